"""Passwords as people choose them, and the forms in which they write them into code, configuration and chats."""

# ruff: noqa: E501 - a form is read as one line

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

# The kinds of human passwords; each draws one.
_WORDS = (
    "winter summer spring autumn monday october welcome dragon sunshine monkey tiger falcon purple orange silver "
    "coffee pizza london berlin madrid chicago arsenal juventus rocket planet thunder shadow buster charlie ginger "
    "maggie letmein iloveyou football guitar diamond phoenix mustang matrix cheese banana pepper cookie turtle panther"
).split()
_KEYBOARD = ("1qaz@WSX", "Qwerty12", "qwe!23", "!QAZ2wsx", "Asdf#1234", "zaq12wsx")
_LIKE_PASSWORD = ("P@ssw0rd", "Passw0rd", "Password")
_SIGNS = "!@#$%*?+="
Draw = Callable[[random.Random], str]


def _word(lot: random.Random) -> str:
    return lot.choice(_WORDS)


def _year(lot: random.Random) -> str:
    return str(lot.randint(1985, 2027))


def _sign(lot: random.Random) -> str:
    return lot.choice(_SIGNS)


def _leet(lot: random.Random) -> str:
    return _word(lot).capitalize().translate(str.maketrans("aeios", "@310$"))


KINDS: Mapping[str, tuple[int, Draw]] = {
    "word, year, sign": (60, lambda lot: _word(lot).capitalize() + _year(lot) + _sign(lot)),
    "word, sign, year, sign": (40, lambda lot: _word(lot).capitalize() + _sign(lot) + _year(lot) + "!"),
    "word, digits": (40, lambda lot: _word(lot) + str(lot.randint(10, 9999))),
    "word_year": (20, lambda lot: lot.choice(("Admin", "Root", "Shop", "Sales")) + "_" + _year(lot)),
    "leet": (30, lambda lot: _leet(lot) + str(lot.randint(1, 99)) + _sign(lot)),
    "two words, digits": (30, lambda lot: _word(lot).capitalize() + _word(lot).capitalize() + str(lot.randint(1, 99))),
    "words with dashes": (20, lambda lot: "-".join([_word(lot), _word(lot), str(lot.randint(1, 999))])),
    "keyboard": (20, lambda lot: lot.choice(_KEYBOARD) + _sign(lot)),
    "word.year": (10, lambda lot: _word(lot).capitalize() + "." + _year(lot)),
    "password, digits": (15, lambda lot: lot.choice(_LIKE_PASSWORD) + str(lot.randint(10, 999)) + "!"),
    "words alone": (15, lambda lot: _word(lot) + lot.choice(("", _word(lot)))),
    "words with a dot": (10, lambda lot: f"{_word(lot)}.{_word(lot)}"),
    "words with a line or a slash": (10, lambda lot: _word(lot) + lot.choice("_/") + _word(lot)),
    "keys in a row": (5, lambda lot: lot.choice(("1q2w3e4r", "changeit", "trustno1", "letmein!"))),
}  # fmt: skip

# Each has `{}` where the password stands.
FORMS: Mapping[str, str] = {
    "env": "DB_PASSWORD={}\nPORT=80\n",
    "shell, export": "export ADMIN_PASSWORD={}\n",
    "YAML": "db:\n  user: app\n  password: {}\n",
    "JSON": '{\n  "user": "app",\n  "password": "{}"\n}\n',
    "TOML": 'user = "app"\npassword = "{}"\n',
    "INI": "[db]\nuser = app\npassword = {}\n",
    "connection string": "Server=db;User Id=sa;Password={};Encrypt=true\n",
    "bearer": "Authorization: Bearer {}\n",
    "default of a variable": 'token = getenv("API_TOKEN", "{}")\n',
    "setter": 'config.setPassword("{}");\n',
    "option": "mytool --user app --password {} --verbose\n",
    "URL": "postgres://app:{}@db.internal:5432/shop\n",
    # As public repositories write them; chosen before anything of the rules was read.
    "properties": "spring.datasource.password={}\n",
    "SQL, IDENTIFIED BY": "CREATE USER 'app'@'localhost' IDENTIFIED BY '{}';\n",
    "sshpass": "sshpass -p '{}' ssh deploy@10.0.0.4 uptime\n",
    "kubectl": "kubectl create secret generic db --from-literal=username=app --from-literal=password='{}' -n shop\n",
    "JDBC": 'Connection c = DriverManager.getConnection("jdbc:mysql://localhost:3306/shop", "root", "{}");\n',
    "C#, credential": 'client.Credentials = new NetworkCredential("mailer@shop.example", "{}");\n',
    "C#, connection string": 'const string Db = "Server=localhost;Database=shop;Uid=root;Pwd={};";\n',
    "PowerShell": '$pw = ConvertTo-SecureString "{}" -AsPlainText -Force\n',
    "XML": "<password>{}</password>\n",
    "JavaScript, auth": 'auth: { user: "mailer@shop.example", pass: "{}" },\n',
    "chpasswd": 'RUN echo "deploy:{}" | chpasswd\n',
    "curl": 'curl -u "admin:{}" https://ci.example/api/json\n',
    "redis.conf": "requirepass {}\n",
    "Ansible inventory": "node2 ansible_host=10.0.0.5 ansible_become_pass={} ansible_user=ops\n",
    "README": "- **Password:** {}\n",
    "PHP, define": "define('DB_PASSWORD', '{}');\n",
    "Java, @Value": '@Value("${db.password:{}}")\n',
    "docker run": "docker run -d -e MYSQL_ROOT_PASSWORD={} mysql:8\n",
    "mysql -p": "mysql -u root -p{} shop < dump.sql\n",
    "YAML, flow map": "db: {user: app, password: {}}\n",
    "YAML, environment": "services:\n  db:\n    environment:\n      POSTGRES_PASSWORD: {}\n",
    "helm --set": "helm upgrade app ./chart --set image.tag=1.2,db.auth.password={},replicas=2\n",
    "connection string with blanks": '<add connectionString="Server=db; User Id=sa; Password={}; Encrypt=true" />\n',
    "Dockerfile, ENV": "FROM redis\nENV REDIS_PASSWORD {}\n",
    "Ruby, hash": 'connect(:user => "app", :password => "{}")\n',
    "Gradle": "release {\n  storePassword '{}'\n  keyAlias 'a'\n}\n",
    "Terraform, default": 'variable "db_password" {\n  type = string\n  default = "{}"\n}\n',
    "netrc": "machine git.example.com login ci password {}\n",
    "Markdown, prose": "Log in as `admin` with the password `{}`.\n",
    "pass beside a user": "user: admin\npass: {}\n",
    "C#, property": 'public string Password { get; set; } = "{}";\n',
    "XML, property": '<property name="hibernate.connection.password">{}</property>\n',
    "Go, flag": 'pass := flag.String("db-password", "{}", "the database password")\n',
    # From other languages, tools and sentences, many of them as public code has them.
    "dockerfile": "FROM alpine\nENV ADMIN_PASSWORD {}\n",
    "properties colon": "spring.datasource.password : {}\n",
    "lua": "local passwd = [[{}]]\n",
    "erlang": '[{user, "bob"}, {password, "{}"}].\n',
    "elixir": 'config :app, Repo, username: "bob", password: "{}"\n',
    "clojure": '{:user "bob" :password "{}"}\n',
    "lisp": '(setq smtp-password "{}")\n',
    "rust": 'const PASSWORD: &str = "{}";\n',
    "c macro": '#define WIFI_PASSWORD "{}"\n',
    "objc": 'NSString *password = @"{}";\n',
    "batch": "set PASSWORD={}\n",
    "powershell": '$Password = ConvertTo-SecureString "{}" -AsPlainText -Force\n',
    "powershell option": "New-LocalUser -Name bob -Password {}\n",
    "js or": 'const dbPassword = process.env.DB_PASSWORD || "{}";\n',
    "environ get": 'value = os.environ.get("DB_PASSWORD", "{}")\n',
    "subscript": 'config["password"] = "{}"\n',
    "makefile": "DB_PASSWORD ?= {}\n",
    "html input": '<input type="password" name="pw" value="{}">\n',
    "html dl": "<dt>Password</dt>\n<dd>{}</dd>\n",
    "html row": "<tr><th>Password</th><td>{}</td></tr>\n",
    "gherkin": 'When I fill in "Password" with "{}"\n',
    "page fill": 'await page.fill("#password", "{}")\n',
    "prose set to": "Set the admin password to {} before the demo.\n",
    "prose slash": "Default credentials: admin / {}\n",
    "md bold": "- **Password:** {}\n",
    "yaml block": "password: >-\n  {}\nport: 5432\n",
    "k8s env": "env:\n  - name: DB_PASSWORD\n    value: {}\n",
    "csv": "user,password,role\nbob,{},dev\n",
    "form body": "curl -d 'username=bob&password={}' https://acme.com/login\n",
    "redis": "bind 127.0.0.1\nrequirepass {}\n",
    "log line": "login failed for user=bob password={} from 10.0.0.1\n",
    "gradle": "credentials {\n  username 'bob'\n  password '{}'\n}\n",
    "scala": 'Map("user" -> "bob", "password" -> "{}")\n',
    "comment": "# the default pw: {}\n",
    "list-table of RST": "   * - Username\n     - admin\n   * - Password\n     - {}\n",
    "rst bold tick": "- **Username:** ``bob``\n- **Password:** ``{}``\n",
    "hash call": 'def test_roundtrip():\n    h = hash_password("{}")\n',
    "map insert": '        vars.insert("MY_PASS".to_string(), "{}".to_string());\n',
    "builder encode": '                .username("kim_")\n                .password(passwordEncoder.encode("{}"))\n',
    "send keys": '            password.sendKeys("{}");\n',
    "laravel bcrypt": "            'email' => 'kim@udi.edu.co',\n            'password' => bcrypt('{}'),\n",
    "go bytes": '\tpass := []byte("{}")\n\tsalt := []byte("tessera-fixed-16")\n',
    "go generate": '\thash, err := bcrypt.GenerateFromPassword([]byte("{}"), bcrypt.DefaultCost)\n',
    "demo credentials": '            text = "Demo credentials — alice@fortress.dev / {}",\n',
    "default is": "            # The default password for each user is {}\n            echo $user | passwd --stdin $user\n",
    "jsx code": '<span>Password:</span>{" "}\n<code className="text-sm">\n    {}\n</code>\n',
    "table of env": "GRU_USERNAME | SSH username | gru\nGRU_PASSWORD | SSH password | {}\nGRU_API | API endpoint | http://localhost:8000\n",
    "mock encode": '        when(passwordEncoder.encode("{}")).thenReturn("x");\n',
    "log record": '        "auth password={} token=abc Authorization: x",\n',
    "tf optional": '    root_password        = optional(string, "{}")\n    custom_user          = optional(string, "deep")\n',
    "await hash": "          password_hash: await bcrypt.hash('{}', 10),\n",
    "sql comment": "('Demo','farmer@demo.com','$2a$11$e0NRu'), -- password: {}\n",
    "By.name": '\t\tdriver.findElement(By.name("password")).sendKeys("{}");\n',
    "testing-library": "    await userEvent.type(screen.getByLabelText(/password/i), '{}')\n",
    "jdbc query": '\tString connURL = "jdbc:mysql://localhost/jav?user=root&password={}&serverTimezone=UTC";\n',
    "ini bare": "password_db = {}\n",
    "PASS alone": "PASS='{}'\n",
    "prose is": "On staging the password is {}, ask Kim for access.\n",
    "prose colon": "Password for the staging box: {}\n",
    "md table": "| user | password | host |\n|---|---|---|\n| bob | {} | db1 |\n",
    "md row": "| Host | db1 |\n| Password | {} |\n",
    "click": '@click.option("--password", "-p", default="{}", show_default=True)\n',
    "here-string": 'read -r PASSWORD <<< "{}"\n',
    "echo stdin": 'echo "{}" | docker login -u bob --password-stdin\n',
    "bearer, alone": "Authorization: Bearer {}\n",
    "compare": 'if password == "{}":\n    grant()\n',
}


def draw_passwords() -> list[tuple[str, str]]:
    """Draw some three hundred passwords, each with the name of its kind."""
    lot = random.Random("passwords")
    return [(kind, draw(lot)) for kind, (count, draw) in KINDS.items() for _ in range(count)]


def shows(password: str, form: str, masked: str) -> bool:
    """Whether more of a password in a form can still be read than six characters in a row."""
    read = re.sub(r"\[REDACTED:[\w-]+\]", "", masked)
    pieces = [password[at : at + 7] for at in range(max(1, len(password) - 6))]
    return any(piece in read and piece not in form for piece in pieces)
