"""A Ray cluster of several nodes on this machine, with GPUs that are stand-ins. Says its address in a line, and ends with its
standard input. A line there says what happens to a node, by its number: `cut N` (it stands still), `mend N`, `kill N`. `restart 0` kills
the head with all nodes, and starts them again at the same address.
"""

import os
import signal
import socket
import sys

# Nothing listens beyond this machine. It was made for systems whose firewalls ask the user otherwise.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# As `docs/src/pool.md` has it: without this a session for the first that connects fails now and then.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

from ray.cluster_utils import Cluster  # noqa: E402

# What Ray keeps in memory of each node: the program travels through it.
MEMORY = 400 << 20

SIGNALS = {"cut": signal.SIGSTOP, "mend": signal.SIGCONT, "kill": signal.SIGKILL}


def start(port, own, models):
    """One node for each GPU model; the head has none."""
    each = {"node_ip_address": "127.0.0.1", "object_store_memory": MEMORY}
    head = {"num_cpus": 0, "num_gpus": 0, "include_dashboard": False, "ray_client_server_port": port, "gcs_server_port": own}
    cluster = Cluster(initialize_head=True, head_node_args=each | head)
    nodes = []
    for model in models:
        nodes.append(cluster.add_node(num_cpus=2, num_gpus=1, resources={f"accelerator_type:{model}": 1}, **each))
    cluster.wait_for_nodes()
    return cluster, nodes


def processes(node):
    """Those of a node, and those that they have started."""
    children = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(entry))
    found = [one.process.pid for each in node.all_processes.values() for one in each]
    for one in found:
        found += children.get(one, [])
    return found


def tell(node, what):
    for process in processes(node):
        try:
            os.kill(process, what)
        except ProcessLookupError:
            pass


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def main():
    port, own, models = int(sys.argv[1]), free_port(), sys.argv[2:]
    cluster, nodes = start(port, own, models)
    print(cluster.address, flush=True)
    for line in sys.stdin:
        what, at = line.split()
        if what == "restart":
            for node in [cluster.head_node, *nodes]:
                tell(node, signal.SIGKILL)
            cluster.shutdown()
            cluster, nodes = start(port, own, models)
        else:
            tell(nodes[int(at)], SIGNALS[what])
        print("done", flush=True)
    cluster.shutdown()


main()
