"""Deployment files: Kubernetes objects, Compose services, CI jobs, stacks, schedules, and the variables they set."""

from __future__ import annotations

import re
from collections.abc import Iterator

from indexer.parsing.registrations.chart_templates import is_chart_template, name_template
from indexer.parsing.registrations.file_context import FileContext
from indexer.parsing.registrations.nested_values import Value
from indexer.text.linear_patterns import compile_pattern
from indexer.types import Registration

_WORKFLOW = re.compile(r"(?:^|/)\.(?:github|gitea|forgejo)/workflows/[^/]+$")
_GITLAB = re.compile(r"(?:^|/)\.gitlab-ci[^/]*$|(?:^|/)\.gitlab/[^/]+$|\.gitlab-ci\.ya?ml$")
_CIRCLE = re.compile(r"(?:^|/)\.circleci/[^/]+$")
_RESERVED = frozenset(
    "default include stages variables workflow image services cache before_script after_script pages:deploy".split()
)
_RUNS = frozenset({"script", "trigger", "extends", "run"})
_VARIABLES = frozenset("env environment variables envVars extraEnv extraEnvVars environmentVariables".split())
_CONFIGURED = {"ConfigMap": ("data",), "Secret": ("data", "stringData")}
_HELM_VALUES = re.compile(r"(?:^|/)values[\w.-]{0,40}\.ya?ml$")
_ENV_FILE = re.compile(
    r"(?:^|/)[\w.-]{0,40}\benv[._-](?:example|sample|template|tmpl|dist|defaults?)$|(?:^|/)[\w-]+\.env$"
)
_ENV_PAIR = compile_pattern(r"\b([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|\S*)")
_ASSIGNED = compile_pattern(r"^\s*(?P<export>export\s+)?(?P<name>[A-Za-z_]\w*)\s?[:?+]{0,2}=\s?(?P<value>.*)$")
_BUILD_STEP = compile_pattern(r"(?i)^\s*(?:ENV|ARG)\s+(?P<name>\w+)(?:\s+(?P<value>[^=\s].*))?")
_EXPORTING = frozenset({"bash", "makefile"})
_VARIABLE = re.compile(r"[A-Za-z_]\w{1,80}")
_SERVERS = frozenset({"image", "build", "extends"})
_CRONTAB = re.compile(r"(?:^|/)(?:crontab|cron\.(?:d|daily|hourly|weekly|monthly)/[^/]+|[^/]+\.(?:cron|crontab))$")
_CRON_LINE = re.compile(
    r"((?:[\d*/,-]+\s+){2}(?:[\w*/,?#-]+\s+){2}[\w*/,?#-]+|@(?:hourly|daily|weekly|monthly|yearly|reboot))\s+(\S.*)"
)
_LONGEST_LINE = 1_000


def find_deployed(document: Value, context: FileContext) -> Iterator[Registration]:
    """Find the deployed services of a YAML or JSON document."""
    kind, name = document.get("kind").text, document.get("metadata", "name").text
    if document.get("apiVersion").text and kind:
        yield from _read_object(document, kind, name, context)
    elif _WORKFLOW.search(context.path):
        yield from _read_workflow(document, context)
    elif _GITLAB.search(context.path):
        yield from _read_pipeline(document, context)
    elif _CIRCLE.search(context.path):
        for job in document.get("jobs").members:
            yield context.make("job", job.key, job.line)
    elif any(member.get("Type").text.startswith("AWS::") for member in document.get("Resources").members):
        yield from _read_stack(document, context)
    elif services := [each for each in document.get("services").members if _SERVERS & {m.key for m in each.members}]:
        for service in services:
            context.define(service.key, "module", service.line, service.end_line)
            yield context.make("service", service.key, service.line, detail=service.get("image").text)
    elif not _HELM_VALUES.search(context.path):
        return
    yield from _read_variables(document, context)


def _read_object(document: Value, kind: str, name: str, context: FileContext) -> Iterator[Registration]:
    if kind == "List":
        for item in document.get("items").members:
            yield from _read_object(item, item.get("kind").text, item.get("metadata", "name").text, context)
        return
    name = name_template(name)
    if not name or "{{" in name or not kind:
        return
    context.define(name, "module", document.line, document.end_line)
    schedule = document.get("spec", "schedule")
    if kind == "CronJob" and schedule.text:
        yield context.make("task", name, schedule.line, detail=schedule.text)
    yield context.make("resource", f"{kind}/{name}", document.get("kind").line)
    for key in _CONFIGURED.get(kind, ()):
        for member in document.get(key).members:
            if _VARIABLE.fullmatch(member.key):
                yield context.make("variable", member.key, member.line, detail=member.text if kind != "Secret" else "")


def _read_workflow(document: Value, context: FileContext) -> Iterator[Registration]:
    title = document.get("name").text or context.path.rpartition("/")[2]
    for job in document.get("jobs").members:
        said = job.get("name").text
        yield context.make("job", job.key, job.line, detail=title, text=said if "${{" not in said else "")
    for item in document.get("on", "schedule").members:
        cron = item.get("cron")
        if cron.text:
            yield context.make("task", title, cron.line, detail=cron.text)


def _read_pipeline(document: Value, context: FileContext) -> Iterator[Registration]:
    for job in document.members:
        is_job = bool(_RUNS & {member.key for member in job.members})
        if is_job and job.key not in _RESERVED and not job.key.startswith("."):
            yield context.make("job", job.key, job.line, detail=job.get("stage").text)


def _read_stack(document: Value, context: FileContext) -> Iterator[Registration]:
    for resource in document.get("Resources").members:
        context.define(resource.key, "module", resource.line, resource.end_line)
        yield context.make("resource", resource.key, resource.line, detail=resource.get("Type").text)
        for event in resource.get("Properties", "Events").members:
            path, method = event.get("Properties", "Path").text, event.get("Properties", "Method").text
            schedule = event.get("Properties", "Schedule").text
            if path and method:
                yield context.make("route", f"{method.upper()} {path}", event.line, handler=resource.key)
            elif schedule:
                yield context.make("task", resource.key, event.line, detail=schedule)


def _read_variables(document: Value, context: FileContext) -> Iterator[Registration]:
    """Find the environment variables set by a document, in lists or mappings of that name."""
    for holder in document.walk():
        if holder.key not in _VARIABLES:
            continue
        for member in holder.members:
            name, value = member.key or member.get("name").text, member.get("value").text
            if not name:
                name, _, value = member.text.partition("=")
            if _VARIABLE.fullmatch(name):
                said = member.text if member.key else value
                is_template = is_chart_template(context.path)
                yield context.make("variable", name, member.line, detail=name_template(said) if is_template else said)


def find_set_variables(context: FileContext) -> Iterator[Registration]:
    """Find the variables set by a Dockerfile, an example environment, a shell script or a Makefile."""
    is_image, is_example = context.language == "dockerfile", bool(_ENV_FILE.search(context.path))
    if not (is_image or is_example or context.language in _EXPORTING):
        return
    is_continued = False
    for number, line in enumerate(context.source.decode("utf-8", "replace").split("\n"), 1):
        said = line[:_LONGEST_LINE]
        if is_image:
            step = _BUILD_STEP.match(said)
            pairs = [(each[1], each[2]) for each in _ENV_PAIR.finditer(said)] if step or is_continued else []
            if step is not None and not pairs:
                pairs = [(step["name"], step["value"] or "")]
            is_continued = bool(step or is_continued) and said.rstrip().endswith("\\")
        else:
            found = _ASSIGNED.match(said)
            is_set = found is not None and (is_example or found["export"])
            pairs = [(found["name"], found["value"])] if found is not None and is_set else []
        for name, value in pairs:
            yield context.make("variable", name, number, detail=value.strip("\"' "))


def find_crontab(context: FileContext) -> Iterator[Registration]:
    """Find the commands of a crontab, with their times."""
    if not _CRONTAB.search(context.path):
        return
    for number, line in enumerate(context.source.decode("utf-8", "replace").split("\n"), 1):
        found = _CRON_LINE.match(line.strip()[:_LONGEST_LINE])
        if found is not None:
            yield context.make("task", found[2], number, detail=found[1])
