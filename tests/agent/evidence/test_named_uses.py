"""What registers a definition by its name, or passes the name on, is told apart from a line that only says it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agent.evidence.named_uses import NamedDefinition, find_named_lines, find_named_uses
from agent.ports import CodeSearch
from indexer.index import CodeIndex
from tests.fakes.repositories import GitRepo

FILES = {
    "pyproject.toml": '[project.scripts]\nrun = "shop.cli:run_shop"\n',
    "setup.cfg": "[options.entry_points]\nconsole_scripts =\n    old = shop.cli:run_old\n",
    "shop/cli.py": "def run_shop():\n    pass\n\n\ndef run_old():\n    pass\n",
    "shop/other.py": "def run_shop():\n    pass\n",
    "shop/tasks.py": (
        "@shared_task\ndef send_mail(to):\n    return to\n\n\n@shared_task\ndef rebuild_index():\n    return 1\n"
    ),
    "shop/views.py": (
        "def pay(request):\n    return 1\n\n\nclass HomeView(View):\n    def get(self, request):\n        return 1\n"
    ),
    "shop/urls.py": (
        'urlpatterns = [\n    path("pay/", views.pay, name="pay-now"),\n'
        '    path("", views.HomeView.as_view(), name="home"),\n]\n'
    ),
    "shop/page.html": "<a href=\"{% url 'shop:home' %}\">Home</a>\n",
    "shop/models.py": (
        "def audit(sender):\n    pass\n\n\n@receiver(post_save)\ndef on_saved(sender):\n"
        '    send_mail.delay("x")\n    app.send_task("shop.tasks.rebuild_index")\n    redirect("pay-now")\n\n\n'
        "post_save.connect(audit)\n# the audit of sends\n"
    ),
    "shop/settings.py": 'HANDLER = "shop.errors.handle_error"\nOTHER = "lib.errors2.handle_error"\n',
    "shop/errors.py": (
        "@functools.cache\ndef handle_error(e):\n    return e\n\n\n@register.filter\ndef price(v):\n    return v\n"
    ),
    "config/routes.rb": (
        "Rails.application.routes.draw do\n  resources :users, only: [:show]\n  get 'all', to: 'posts#show'\nend\n"
    ),
    "app/users_controller.rb": "class UsersController\n  def show\n  end\nend\n",
    "app/posts_controller.rb": "class PostsController\n  def show\n    MailJob.perform_later(1)\n  end\nend\n",
    "app/mail_job.rb": "class MailJob\n  def perform\n  end\nend\n",
    "src/Beans.java": "class Beans {\n  @Bean\n  Clock systemClock() { return null; }\n}\n",
    "web/app.js": "function listOrders(req) { }\napp.get('/orders', wrap(listOrders));\n",
}


EXPECTED: Mapping[str, set[str]] = {
    "cli.run_shop": {"pyproject.toml:2 registered as an entry point"},
    "other.run_shop": set(),
    "run_old": {"setup.cfg:3 registered as an entry point"},
    "send_mail": {"shop/tasks.py:1 registered as the task `send_mail`", "shop/models.py:7 called through `.delay`"},
    "rebuild_index": {
        "shop/tasks.py:6 registered as the task `rebuild_index`",
        "shop/models.py:8 named by a string",
    },
    "pay": {
        "shop/urls.py:2 registered as the endpoint `/pay/`",
        "shop/models.py:9 links to it by the URL name `pay-now`",
    },
    "HomeView": {
        "shop/urls.py:3 registered as the endpoint `/`",
        "shop/page.html:1 links to it by the URL name `home`",
    },
    "on_saved": {"shop/models.py:5 registered as the event `post_save`"},
    "audit": {"shop/models.py:12 passed as a value"},
    "handle_error": {"shop/settings.py:1 named by a string"},
    "price": {"shop/errors.py:6 a decorator that may register it"},
    "UsersController.show": {"config/routes.rb:2 registered as the endpoint `GET /users/:id`"},
    "PostsController.show": {"config/routes.rb:3 registered as the endpoint `GET /all`"},
    "MailJob": {"app/posts_controller.rb:3 called through `.perform_later`"},
    "systemClock": {"src/Beans.java:2 a decorator that may register it"},
    "listOrders": {"web/app.js:2 registered as the endpoint `GET /orders`"},
}


async def test_uses_by_name_are_found_with_their_kinds(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "shop")
    for path, text in FILES.items():
        repo.write(path, text)
    repo.commit()
    index = await CodeIndex.open(repo.root, home=tmp_path / "home")
    try:
        await index.refresh()
        code = await index.pin()
        assert {name: await describe(code, name) for name in EXPECTED} == EXPECTED
    finally:
        await index.aclose()


async def describe(code: CodeSearch, name: str) -> set[str]:
    target = await NamedDefinition.find(code, name)
    uses = [*await find_named_uses(code, target), *await find_named_lines(code, target)]
    found = {f"{ref['path']}:{ref['start_line']}": ref["kind"] for ref in reversed(uses)}
    return {f"{place} {kind}" for place, kind in found.items()}
