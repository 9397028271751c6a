//! Launches that come later than the first call.

use serde_json::json;

use super::{Project, entries};

#[test]
fn a_function_that_launches_later_is_recorded_then() {
    let main = "
TRITON = False

def double(x):
    if not TRITON:
        return x * 2
    out = torch.empty_like(x)
    double_kernel[(1,)](x, out, x.numel(), BLOCK=64)
    return out

for _ in range(40):
    double(torch.ones(50))
TRITON = True
for _ in range(5):
    double(torch.ones(50))
";
    let (_project, workloads) = Project::recorded(main);
    // The first of them is looked at from inside alone.
    assert_eq!(entries(&workloads), ["double", "double_kernel"]);
    assert_eq!(workloads[0]["count"], json!(4));
}
