#!/usr/bin/env python3
"""pod.py JOB.yaml arguments|podman SECRETS NAME=VALUE...: how the job's one container is started on this machine, a word a line.

`arguments`: its command; what mounts a secret is the folder SECRETS. `podman`: the options of `podman
run` that mean what the job says, and its command. NAME=VALUE stand for what the job's env has. Fails
where the pod would not have its cores to itself, could become root, or could write its image.
"""
import re
import sys

import yaml


def check(pod, container):
    resources = container["resources"]
    assert resources["requests"] == resources["limits"], "no pod of the class Guaranteed"
    assert re.fullmatch(r"\d+", resources["limits"]["cpu"]), "cores are not whole"
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] > 0
    own = container["securityContext"]
    assert own["readOnlyRootFilesystem"] and not own["allowPrivilegeEscalation"]
    assert own["capabilities"]["drop"] == ["ALL"]
    assert pod["terminationGracePeriodSeconds"] >= 60, "a trial may take that long"


def environment(container, given):
    """The variables, those of `given` instead of the job's; a name of `given` that it lacks is a slip."""
    named = {each["name"]: each.get("value") for each in container["env"]}
    assert given.keys() <= named.keys(), f"{given.keys() - named.keys()} are not in the job's env"
    named.update(given)
    assert None not in named.values(), f"{named}: give what the cluster would"
    return named


def command(container, variables):
    words = container["command"] + container["args"]
    for word in words:
        for name in re.findall(r"\$\((\w+)\)", word):
            assert name in variables, f"$({name}) is no variable of the container"
    return [re.sub(r"\$\((\w+)\)", lambda m: variables[m.group(1)], word) for word in words]


def mounts(pod, container):
    """(the volume's source, where it is)"""
    volumes = {each["name"]: each for each in pod["volumes"]}
    for each in container["volumeMounts"]:
        yield volumes[each["name"]], each["mountPath"]


def podman_options(pod, container, variables, secrets):
    user = pod["securityContext"]
    yield from ("--user", f"{user['runAsUser']}:{user['runAsGroup']}", "--read-only",
                "--read-only-tmpfs=false", "--cap-drop", "all", "--security-opt", "no-new-privileges",
                "--stop-timeout", str(pod["terminationGracePeriodSeconds"]))
    for name, value in variables.items():
        yield from ("--env", f"{name}={value}")
    for volume, path in mounts(pod, container):
        if "secret" in volume:
            yield from ("--volume", f"{secrets}:{path}:ro")
        else:
            assert "emptyDir" in volume, volume
            yield from ("--tmpfs", f"{path}:mode=1777")


def main():
    path, form, secrets, *given = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        job = yaml.safe_load(file)
    assert job["kind"] == "Job" and job["spec"]["parallelism"] == job["spec"]["completions"]
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    check(pod, container)
    variables = environment(container, dict(each.split("=", 1) for each in given))
    words = command(container, variables)
    if form == "podman":
        words = [*podman_options(pod, container, variables, secrets), "--", *words]
    else:
        for volume, mounted in mounts(pod, container):
            if "secret" in volume:
                words = [word.replace(mounted, secrets) for word in words]
    print("\n".join(words))


if __name__ == "__main__":
    main()
