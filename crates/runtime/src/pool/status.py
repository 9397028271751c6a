"""The state of a cluster, for `warpsmith pool status`."""

import ray
from warpsmith_pool_hosts import gpus_of, model_of

# How long hosts may take to answer, in seconds.
PATIENCE = 5


def reports():
    """The reports of the hosts of all clients, and the number of hosts that did not answer."""
    named = ray.util.list_named_actors(all_namespaces=True)
    actors = [ray.get_actor(one["name"], namespace="warpsmith") for one in named if one["namespace"] == "warpsmith"]
    asked = [actor.report.remote() for actor in actors]
    answered, silent = ray.wait(asked, num_returns=len(asked), timeout=PATIENCE) if asked else ([], [])
    found = []
    for one in answered:
        try:
            found.append(ray.get(one))
        except ray.exceptions.RayError:
            silent.append(one)
    return found, len(silent)


def status():
    hosts, silent = reports()
    free = ray.available_resources().get("GPU", 0.0)
    nodes = [
        {
            "id": node["NodeID"],
            "name": f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})",
            "alive": node["Alive"],
            "model": model_of(node),
            "gpus": gpus_of(node),
            "cores": int(node["Resources"].get("CPU", 0)),
        }
        for node in ray.nodes()
    ]
    return {"Status": {"ray": ray.__version__, "free": free, "nodes": nodes, "hosts": hosts, "silent": silent}}
