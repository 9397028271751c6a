//! Templates of synthetic kernels, one for each family. `$name` is a role (see `style.rs`), `$T` an element type,
//! `$SIZE` and `$SMALL` are tile sizes, and `$CHAIN` is a chain of operators on `$v`.

/// A family of kernels.
#[derive(Debug)]
pub(crate) struct KernelFamily {
    /// The name of the family.
    pub(crate) name: &'static str,
    /// The signature, as written in the comment.
    pub(crate) signature: &'static str,
    /// The code before the kernel; may be empty.
    pub(crate) before: &'static str,
    /// The definition of the kernel, without decorator.
    pub(crate) body: &'static str,
}

/// Statements for chains of operators; each computes `$v` from `$v` (fp32 tiles).
pub(crate) const OPERATORS: &[&str] = &[
    "$v = $v * 2.0",
    "$v = $tl.exp($v)",
    "$v = $tl.maximum($v, 0.0)",
    "$v = $tl.where($v > 0, $v, 0.1 * $v)",
    "$v = $tl.sigmoid($v)",
    "$t = $v * $v\n$v = $t + $v",
    "$v = $tl.sqrt($tl.abs($v))",
    "$v = $v / (1.0 + $tl.exp(-$v))",
    "$v += 1.0",
    "$v = $tl.minimum($v, 6.0) - 3.0",
    "$v = $tl.cos($v) + $tl.sin($v)",
    "$v = $tl.log($tl.abs($v) + 1.0)",
    "$v *= 0.5",
    "$v = -$v",
];

const HELPER: &str = "@$jit\ndef $f($fa, $fb):\n    return $fa * $fb + $fa\n\n\n";

/// All families.
pub(crate) const FAMILIES: &[KernelFamily] = &[
    KernelFamily {
        name: "elementwise",
        signature: "$x=*$T $z=*$T $n=i32 $B=$SIZE",
        before: "",
        body: "
def $k($x, $z, $n, $B: $tl.constexpr):
    $pid = $tl.program_id(0)
    $o = $pid * $B + $tl.arange(0, $B)
    $q = $o < $n
    $v = $tl.load($x + $o, mask=$q, other=0.0).to($tl.float32)
    $CHAIN
    $tl.store($z + $o, $v, mask=$q)
",
    },
    KernelFamily {
        name: "binary",
        signature: "$x=*$T $y=*$T $z=*$T $n=i32 $eps=fp32 $B=$SIZE",
        before: "",
        body: "
def $k($x, $y, $z, $n, $eps, $B: $tl.constexpr):
    $pid = $tl.program_id(axis=0)
    $o = $pid * $B + $tl.arange(0, $B)
    $v = $tl.load($x + $o, mask=$o < $n).to($tl.float32)
    $u = $tl.load($y + $o, mask=$o < $n).to($tl.float32)
    $v = $v + $u * $eps
    $CHAIN
    $tl.store($z + $o, $v, mask=$o < $n)
",
    },
    KernelFamily {
        name: "row_sum",
        signature: "$x=*$T $z=*fp32 $n=i32 $s=i32 $B=$SIZE",
        before: "",
        body: "
def $k($x, $z, $n, $s, $B: $tl.constexpr):
    $pid = $tl.program_id(0)
    $o = $tl.arange(0, $B)
    $q = $o < $n
    $v = $tl.load($x + $pid * $s + $o, mask=$q, other=0.0).to($tl.float32)
    $CHAIN
    $acc = $tl.sum($v, axis=0)
    $tl.store($z + $pid, $acc)
",
    },
    KernelFamily {
        name: "softmax",
        signature: "$x=*$T $z=*$T $n=i32 $s=i32 $B=$SIZE",
        before: "",
        body: "
def $k($z, $x, $s, $n, $B: $tl.constexpr):
    $pid = $tl.program_id(0)
    $x += $pid * $s
    $o = $tl.arange(0, $B)
    $q = $o < $n
    $v = $tl.load($x + $o, mask=$q, other=-float('inf')).to($tl.float32)
    $mx = $tl.max($v, axis=0)
    $t = $tl.exp($v - $mx)
    $acc = $tl.sum($t, axis=0)
    $r = $t / $acc
    $tl.store($z + $pid * $s + $o, $r, mask=$q)
",
    },
    KernelFamily {
        name: "layer_norm",
        signature: "$x=*$T $w=*$T $y=*$T $z=*$T $n=i32 $s=i32 $eps=fp32 $B=$SIZE",
        before: "",
        body: "
def $k($x, $w, $y, $z, $s, $n, $eps, $B: $tl.constexpr):
    $pid = $tl.program_id(0)
    $acc = $tl.zeros([$B], dtype=$tl.float32)
    for $i in range(0, $n, $B):
        $o = $i + $tl.arange(0, $B)
        $v = $tl.load($x + $pid * $s + $o, mask=$o < $n, other=0.0).to($tl.float32)
        $acc += $v
    $mx = $tl.sum($acc, axis=0) / $n
    $t = $tl.rsqrt($mx * $mx + $eps)
    for $i in range(0, $n, $B):
        $o = $i + $tl.arange(0, $B)
        $q = $o < $n
        $g = $tl.load($w + $o, mask=$q).to($tl.float32)
        $u = $tl.load($y + $o, mask=$q).to($tl.float32)
        $v = $tl.load($x + $pid * $s + $o, mask=$q, other=0.0).to($tl.float32)
        $r = ($v - $mx) * $t * $g + $u
        $tl.store($z + $pid * $s + $o, $r, mask=$q)
",
    },
    KernelFamily {
        name: "rms_norm",
        signature: "$x=*$T $w=*fp32 $z=*$T $n=i32 $s=i32 $eps=fp32 $B=$SIZE",
        before: "",
        body: "
def $k($x, $w, $z, $s, $n, $eps, $B: $tl.constexpr):
    $pid = $tl.program_id(0)
    $o = $tl.arange(0, $B)
    $q = $o < $n
    $v = $tl.load($x + $pid * $s + $o, mask=$q, other=0.0).to($tl.float32)
    $acc = $tl.sum($v * $v, 0) / $n
    $r = 1 / $tl.sqrt($acc + $eps)
    $g = $tl.load($w + $o, mask=$q)
    $CHAIN
    $tl.store($z + $pid * $s + $o, $v * $r * $g, mask=$q)
",
    },
    KernelFamily {
        name: "matmul",
        signature: "$x=*fp16 $y=*fp16 $z=*fp32 $m=i32 $n=i32 $s=i32 $A=32 $B=64 $K=32",
        before: "",
        body: "
def $k($x, $y, $z, $m, $n, $s, $A: $tl.constexpr, $B: $tl.constexpr, $K: $tl.constexpr):
    $pm = $tl.program_id(0)
    $pid = $tl.program_id(1)
    $om = $pm * $A + $tl.arange(0, $A)
    $o = $pid * $B + $tl.arange(0, $B)
    $ok = $tl.arange(0, $K)
    $acc = $tl.zeros(($A, $B), dtype=$tl.float32)
    for $i in range(0, $s, $K):
        $v = $tl.load($x + $om[:, None] * $s + ($ok + $i)[None, :])
        $u = $tl.load($y + ($ok + $i)[:, None] * $n + $o[None, :])
        $acc += $tl.dot($v, $u)
    $q = ($om[:, None] < $m) & ($o[None, :] < $n)
    $tl.store($z + $om[:, None] * $n + $o[None, :], $acc, mask=$q)
",
    },
    KernelFamily {
        name: "attention",
        signature: "$x=*fp16 $y=*fp16 $w=*fp16 $z=*fp16 $n=i32 $s=i32 $eps=fp32 $A=64 $B=64 $K=64",
        before: "",
        body: "
def $k($x, $y, $w, $z, $n, $s, $eps, $A: $tl.constexpr, $B: $tl.constexpr, $K: $tl.constexpr):
    $pm = $tl.program_id(0)
    $om = $pm * $A + $tl.arange(0, $A)
    $o = $tl.arange(0, $B)
    $ok = $tl.arange(0, $K)
    $v = $tl.load($x + $om[:, None] * $s + $ok[None, :], mask=$om[:, None] < $n, other=0.0)
    $mx = $tl.full([$A], -1e30, $tl.float32)
    $acc = $tl.zeros([$A, $K], dtype=$tl.float32)
    $r = $tl.zeros([$A], dtype=$tl.float32)
    for $i in range(0, $n, $B):
        $u = $tl.load($y + ($i + $o)[:, None] * $s + $ok[None, :])
        $g = $tl.load($w + ($i + $o)[:, None] * $s + $ok[None, :])
        $t = $tl.dot($v, $tl.trans($u)) * $eps
        $fa = $tl.maximum($mx, $tl.max($t, 1))
        $fb = $tl.exp($t - $fa[:, None])
        $acc = $acc * $tl.exp($mx - $fa)[:, None] + $tl.dot($fb.to($tl.float16), $g)
        $r = $r * $tl.exp($mx - $fa) + $tl.sum($fb, 1)
        $mx = $fa
    $acc = $acc / $r[:, None]
    $tl.store($z + $om[:, None] * $s + $ok[None, :], $acc.to($tl.float16), mask=$om[:, None] < $n)
",
    },
    KernelFamily {
        name: "gather",
        signature: "$x=*$T $idx=*i64 $z=*$T $n=i32 $s=i32 $B=$SIZE",
        before: "",
        body: "
def $k($x, $idx, $z, $s, $n, $B: $tl.constexpr):
    $pid = $tl.program_id(0)
    $o = $pid * $B + $tl.arange(0, $B)
    $q = $o < $n
    $i = $tl.load($idx + $o, mask=$q, other=0)
    $v = $tl.load($x + $i * $s, mask=$q & ($i >= 0), other=0.0).to($tl.float32)
    $CHAIN
    $tl.store($z + $o, $v, mask=$q)
",
    },
    KernelFamily {
        name: "scan",
        signature: "$x=*$T $z=*fp32 $n=i32 $B=$SIZE",
        before: "",
        body: "
def $k($x, $z, $n, $B: $tl.constexpr):
    $o = $tl.arange(0, $B)
    $q = $o < $n
    $v = $tl.load($x + $tl.program_id(0) * $n + $o, mask=$q, other=0.0).to($tl.float32)
    $CHAIN
    $r = $tl.cumsum($v, axis=0)
    $tl.store($z + $tl.program_id(0) * $n + $o, $r, mask=$q)
",
    },
    KernelFamily {
        name: "histogram",
        signature: "$idx=*i32 $z=*i32 $x=*fp32 $w=*fp32 $n=i32 $B=$SIZE",
        before: "",
        body: "
def $k($idx, $z, $x, $w, $n, $B: $tl.constexpr):
    $pid = $tl.program_id(0)
    $o = $pid * $B + $tl.arange(0, $B)
    $q = $o < $n
    $i = $tl.load($idx + $o, mask=$q, other=0)
    $tl.atomic_add($z + $i, 1, mask=$q)
    $v = $tl.load($x + $o, mask=$q, other=0.0)
    $CHAIN
    $tl.atomic_max($w + $pid, $tl.max($v, 0))
",
    },
    KernelFamily {
        name: "quantize",
        signature: "$x=*$T $z=*i8 $w=*fp32 $n=i32 $B=$SIZE",
        before: "",
        body: "
def $k($x, $z, $w, $n, $B: $tl.constexpr):
    $pid = $tl.program_id(0)
    $o = $tl.arange(0, $B)
    $q = $o < $n
    $v = $tl.load($x + $pid * $n + $o, mask=$q, other=0.0).to($tl.float32)
    $mx = $tl.max($tl.abs($v), axis=0)
    $t = $mx / 127.0
    $CHAIN
    $r = $tl.floor($v / $t + 0.5).to($tl.int8)
    $tl.store($z + $pid * $n + $o, $r, mask=$q)
    $tl.store($w + $pid, $t)
",
    },
    KernelFamily {
        name: "transpose",
        signature: "$x=*$T $z=*$T $m=i32 $n=i32 $A=$SMALL $B=32",
        before: "",
        body: "
def $k($x, $z, $m, $n, $A: $tl.constexpr, $B: $tl.constexpr):
    $pm = $tl.program_id(0)
    $pid = $tl.program_id(1)
    $om = $pm * $A + $tl.arange(0, $A)
    $o = $pid * $B + $tl.arange(0, $B)
    $q = ($om < $m)[:, None] & ($o < $n)[None, :]
    $v = $tl.load($x + $om[:, None] * $n + $o[None, :], mask=$q, other=0.0)
    $r = $tl.trans($v)
    $tl.store($z + $o[:, None] * $m + $om[None, :], $r, mask=$tl.trans($q))
",
    },
    KernelFamily {
        name: "helper",
        signature: "$x=*$T $y=*$T $z=*$T $n=i32 $B=$SIZE",
        before: HELPER,
        body: "
def $k($x, $y, $z, $n, $B: $tl.constexpr):
    $pid = $tl.program_id(0)
    $o = $pid * $B + $tl.arange(0, $B)
    $q = $o < $n
    $v = $tl.load($x + $o, mask=$q).to($tl.float32)
    $u = $tl.load($y + $o, mask=$q).to($tl.float32)
    $v = $f($v, $u)
    $CHAIN
    $tl.store($z + $o, $v, mask=$q)
",
    },
    KernelFamily {
        name: "branches",
        signature: "$x=*$T $z=*$T $n=i32 $F=1 $B=$SIZE",
        before: "",
        body: "
def $k($x, $z, $n, $F: $tl.constexpr, $B: $tl.constexpr):
    $pid = $tl.program_id(0)
    $o = $pid * $B + $tl.arange(0, $B)
    $q = $o < $n
    $v = $tl.load($x + $o, mask=$q, other=0.0).to($tl.float32)
    if $F == 1:
        $v = $tl.maximum($v, 0.0)
    elif $F == 2:
        $v = $tl.sigmoid($v)
    else:
        $v = $v * 0.5
    $CHAIN
    if $pid > 0:
        $v = $v + 1.0
    $tl.store($z + $o, $v, mask=$q)
",
    },
    KernelFamily {
        name: "unrolled",
        signature: "$x=*$T $z=*fp32 $n=i32 $K=4 $B=$SIZE",
        before: "",
        body: "
def $k($x, $z, $n, $K: $tl.constexpr, $B: $tl.constexpr):
    $pid = $tl.program_id(0)
    $acc = $tl.zeros(($B,), dtype=$tl.float32)
    for $i in $tl.static_range($K):
        $o = ($pid * $K + $i) * $B + $tl.arange(0, $B)
        $v = $tl.load($x + $o, mask=$o < $n, other=0.0).to($tl.float32)
        $acc += $v * $v
    $r = $tl.sum($acc, axis=0)
    $tl.store($z + $pid, $r)
",
    },
    KernelFamily {
        name: "argmax",
        signature: "$x=*$T $z=*i32 $w=*fp32 $n=i32 $B=$SIZE",
        before: "",
        body: "
def $k($x, $z, $w, $n, $B: $tl.constexpr):
    $pid = $tl.program_id(0)
    $o = $tl.arange(0, $B)
    $v = $tl.load($x + $pid * $n + $o, mask=$o < $n, other=-1e9).to($tl.float32)
    $CHAIN
    $i = $tl.argmax($v, axis=0)
    $mx = $tl.max($v, axis=0)
    $tl.store($z + $pid, $i)
    $tl.store($w + $pid, $mx)
",
    },
    KernelFamily {
        name: "dropout",
        signature: "$x=*$T $z=*$T $n=i32 $eps=fp32 $m=i32 $B=$SIZE",
        before: "",
        body: "
def $k($x, $z, $n, $eps, $m, $B: $tl.constexpr):
    $pid = $tl.program_id(0)
    $o = $pid * $B + $tl.arange(0, $B)
    $q = $o < $n
    $v = $tl.load($x + $o, mask=$q).to($tl.float32)
    $t = $tl.rand($m, $o)
    $u = $t > $eps
    $r = $tl.where($u, $v / (1 - $eps), 0.0)
    $tl.store($z + $o, $r, mask=$q)
",
    },
    KernelFamily {
        name: "while_loop",
        signature: "$x=*$T $z=*fp32 $n=i32 $B=$SIZE",
        before: "",
        body: "
def $k($x, $z, $n, $B: $tl.constexpr):
    $pid = $tl.program_id(0)
    $acc = $tl.zeros([$B], $tl.float32)
    $i = $pid * $B
    while $i < $n:
        $o = $i + $tl.arange(0, $B)
        $v = $tl.load($x + $o, mask=$o < $n, other=0.0).to($tl.float32)
        $acc += $v
        $i += $tl.num_programs(0) * $B
    $tl.store($z + $pid, $tl.sum($acc, axis=0))
",
    },
    KernelFamily {
        name: "tile_reduce",
        signature: "$x=*$T $z=*fp32 $m=i32 $n=i32 $A=$SMALL $B=64",
        before: "",
        body: "
def $k($x, $z, $m, $n, $A: $tl.constexpr, $B: $tl.constexpr):
    $pm = $tl.program_id(0)
    $om = $pm * $A + $tl.arange(0, $A)
    $acc = $tl.zeros([$A, $B], dtype=$tl.float32)
    for $i in range(0, $tl.cdiv($n, $B)):
        $o = $i * $B + $tl.arange(0, $B)
        $q = ($om[:, None] < $m) & ($o[None, :] < $n)
        $v = $tl.load($x + $om[:, None] * $n + $o[None, :], mask=$q, other=0.0).to($tl.float32)
        $acc += $v
    $r = $tl.sum($acc, axis=1)
    $tl.store($z + $om, $r, mask=$om < $m)
",
    },
    KernelFamily {
        name: "gated",
        signature: "$x=*$T $y=*$T $z=*$T $s=i32 $n=i32 $B=$SIZE",
        before: "",
        body: "
def $k($x, $y, $z, $s, $n, $B: $tl.constexpr):
    $pid = $tl.program_id(0).to($tl.int64)
    $x += $pid * $s
    $y += $pid * $s
    $z += $pid * $s
    $o = $tl.arange(0, $B)
    $q = $o < $n
    $v = $tl.load($x + $o, mask=$q, other=0).to($tl.float32)
    $u = $tl.load($y + $o, mask=$q, other=0).to($tl.float32)
    $r = $v * $tl.sigmoid($v) * $u
    $tl.store($z + $o, $r, mask=$q)
",
    },
    KernelFamily {
        name: "rotary",
        signature: "$x=*$T $y=*fp32 $w=*fp32 $s=i32 $K=32",
        before: "",
        body: "
def $k($x, $y, $w, $s, $K: $tl.constexpr):
    $pid = $tl.program_id(0)
    $o = $tl.arange(0, $K)
    $u = $tl.load($y + $pid * $K + $o)
    $g = $tl.load($w + $pid * $K + $o)
    $v = $tl.load($x + $pid * $s + $o).to($tl.float32)
    $t = $tl.load($x + $pid * $s + $K + $o).to($tl.float32)
    $tl.store($x + $pid * $s + $o, $v * $u - $t * $g)
    $tl.store($x + $pid * $s + $K + $o, $t * $u + $v * $g)
",
    },
    KernelFamily {
        name: "cross_entropy",
        signature: "$x=*$T $idx=*i64 $z=*fp32 $n=i32 $s=i32 $B=$SIZE",
        before: "",
        body: "
def $k($x, $idx, $z, $s, $n, $B: $tl.constexpr):
    $pid = $tl.program_id(0)
    $i = $tl.load($idx + $pid)
    $o = $tl.arange(0, $B)
    $q = $o < $n
    $v = $tl.load($x + $pid * $s + $o, mask=$q, other=-float('inf')).to($tl.float32)
    $mx = $tl.max($v, 0)
    $acc = $tl.log($tl.sum($tl.exp($v - $mx), 0)) + $mx
    $t = $tl.load($x + $pid * $s + $i).to($tl.float32)
    $r = $acc - $t
    $tl.store($z + $pid, $r)
",
    },
    KernelFamily {
        name: "outer",
        signature: "$x=*$T $y=*$T $z=*fp32 $n=i32 $A=$SMALL $B=32",
        before: "",
        body: "
def $k($x, $y, $z, $n, $A: $tl.constexpr, $B: $tl.constexpr):
    $om = $tl.arange(0, $A)
    $o = $tl.arange(0, $B)
    $v = $tl.load($x + $om).to($tl.float32)
    $u = $tl.load($y + $o).to($tl.float32)
    $t = $v[:, None] * $u[None, :]
    $r = $tl.reshape($t, ($A * $B,))
    $acc = $tl.expand_dims($tl.sum($t, axis=0), 0)
    $g = $t + $tl.broadcast_to($acc, ($A, $B))
    $tl.store($z + $om[:, None] * $n + $o[None, :], $g)
    $tl.store($z + $tl.arange(0, $A * $B), $r)
",
    },
];
