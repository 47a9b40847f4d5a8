"""The forms in which people leave secrets in code, configuration, commands and chats, and random values for them."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from dataclasses import dataclass

ALNUM = string.ascii_letters + string.digits
ALPHABETS = {
    "hex": "0123456789abcdef",
    "base64": ALNUM + "+/",
    "alnum": ALNUM,
    "symbols": ALNUM + "!#$%&()*+,-./:;<=>?@[]^_{|}~",
}
SHORTEST, LONGEST = 12, 64
SURVIVING = 6  # characters of a value in a row that nobody may read


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """A text with `{}` where the secret stands, and the characters that would end the secret there."""

    name: str
    text: str
    breaking: str = ""

    def fill(self, value: str) -> str:
        """Return the text with a secret in it."""
        return self.text.replace("{}", value)


_SHELL = "#$&();<>|*?[]{}~!%"  # a shell would take these for its own, without quotes
_URL = "#$%&()*+,/:;<=>?@[]^{|}!"  # these are written as `%2F` in an address
_XML = "&<>"
_QUERY = "#&+%/=?;<>[]{}|^$(),!*:@"
_YAML = "#:&*!|>%@[]{},?-"
_BEARER = "#$%&()*,:;<>?@[]^{|}!"
_CONNECTION = ";{}=&<>(),|"

FORMS = (
    Form(name="env", text="APP_ENV=prod\nDB_PASSWORD={}\nPORT=80\n", breaking="#$"),
    Form(name="env, exported with ;", text="export API_TOKEN={};\n", breaking=_SHELL),
    Form(name="env, quoted", text='export API_TOKEN="{}"\n', breaking="$"),
    Form(name="env, SECRET_KEY_BASE", text="SECRET_KEY_BASE={}\n", breaking="#$"),
    Form(name="env, APP_KEY of Laravel", text="APP_KEY=base64:{}\n", breaking="#$&();<>|?[]{}~!%*@,.:^-_"),
    Form(name="env, PowerShell", text='$env:API_KEY = "{}"\n', breaking="$"),
    Form(name="YAML", text="db:\n  password: {}\n  port: 5432\n", breaking=_YAML),
    Form(name="YAML with a comment", text="db:\n  password: {}  # rotated in May\n", breaking=_YAML),
    Form(name="YAML, quoted, with a comment", text="  apiKey: '{}' # old\n"),
    Form(name="YAML, list of variables", text="env:\n  - name: DB_PASSWORD\n    value: {}\n", breaking=_YAML),
    Form(name="YAML, list of quoted ones", text='env:\n  - name: API_TOKEN\n    value: "{}"\n'),
    Form(name="properties", text="spring.datasource.password={}\n"),
    Form(name="properties with spaces", text="db.password = {}\n", breaking="#;"),
    Form(name="properties with a colon", text="api.token: {}\n", breaking="#;"),
    Form(name="INI", text="[db]\nuser = app\npassword={}\n", breaking="#;"),
    Form(name="JSON", text='{\n  "clientSecret": "{}",\n  "id": 1\n}\n'),
    Form(name="JSON, escaped", text='body = "{\\"password\\": \\"{}\\"}"\n'),
    Form(name="JSON, list of variables", text='{"name": "DB_PASSWORD", "value": "{}"}\n'),
    Form(name="TOML", text='access_token = "{}"\n'),
    Form(name="Terraform", text='variable "db_password" {\n  default = "{}"\n}\n'),
    Form(name="code, camelCase", text='    private String dbPassword = "{}";\n'),
    Form(name="code, clientSecret", text="const clientSecret = '{}';\n"),
    Form(name="code, accessToken", text='  accessToken: "{}",\n'),
    Form(name="code, typed", text='let token: &str = "{}";\n'),
    Form(name="code, template literal", text="const apiSecret = `{}`;\n", breaking="$"),
    Form(name="code, subscript", text='config["secret_key"] = "{}"\n'),
    Form(name="code, keyword argument", text="connect(user='app', password='{}', port=1)\n"),
    Form(name="code, Ruby hash", text=":password => '{}',\n"),
    Form(name="code, Go", text='apiKey := "{}"\n'),
    Form(name="getenv with a default", text='token = os.getenv("API_TOKEN", "{}")\n'),
    Form(name="environ.get with a default", text="x = os.environ.get('DB_PASSWORD', '{}')\n"),
    Form(name="process.env with a default", text='const s = process.env.APP_SECRET || "{}";\n'),
    Form(name="process.env with ??", text="const s = process.env.APP_SECRET ?? '{}'\n"),
    Form(name="ENV.fetch with a block", text='ENV.fetch("SECRET_KEY_BASE") { "{}" }\n'),
    Form(name="getProperty with a default", text='System.getProperty("db.password", "{}");\n'),
    Form(name="setter", text='config.setPassword("{}");\n'),
    Form(name="builder", text='Client.builder().apiKey("{}").build()\n'),
    Form(name="builder, with...", text='.withClientSecret("{}")\n'),
    Form(name="put", text='props.put("password", "{}");\n'),
    Form(name="header", text="X-Api-Key: {}\n", breaking="<>"),
    Form(name="header of curl", text='curl -H "X-Api-Key: {}" https://example.org\n', breaking="$<>&;,()|"),
    Form(name="header in code", text='headers["X-Auth-Token"] = "{}"\n'),
    Form(name="bearer", text="Authorization: Bearer {}\n", breaking=_BEARER),
    Form(name="bearer of curl", text="curl -H 'Authorization: Bearer {}' https://x\n", breaking=_BEARER),
    Form(name="bearer in code", text='"Authorization": "Bearer {}",\n', breaking=_BEARER),
    Form(name="bearer by itself", text='h = f"Bearer {}"\n', breaking=_BEARER),
    Form(name="basic", text="Authorization: Basic {}\n", breaking="#$%&()*,:;<>?@[]^{|}!-_.~"),
    Form(name="token header", text="Authorization: Token {}\n", breaking="<>,"),
    Form(name="ADO.NET", text="Server=db;Database=x;User Id=sa;Password={};Encrypt=true\n", breaking=_CONNECTION),
    Form(name="ADO.NET in code", text='var c = "Server=db;Uid=sa;Pwd={}";\n', breaking=_CONNECTION),
    Form(name="ODBC", text="DRIVER={PG};SERVER=db;UID=app;PWD={};\n", breaking=_CONNECTION),
    Form(name="JDBC", text="jdbc:sqlserver://h:1433;user=sa;password={};encrypt=true\n", breaking=_CONNECTION),
    Form(name="JDBC, query", text="jdbc:mysql://h/db?user=a&password={}&useSSL=false\n", breaking=_QUERY),
    Form(name="libpq", text="host=db user=app password={} dbname=x\n", breaking="&;,()<>|"),
    Form(name="DSN of Go", text='dsn := "app:{}@tcp(db:3306)/x"\n', breaking="@:/[]"),
    Form(name="URL", text="postgres://app:{}@db:5432/x\n", breaking=_URL),
    Form(name="URL of a queue", text='broker = "amqp://app:{}@mq/v"\n', breaking=_URL),
    Form(name="query", text="https://x.example/y?api_key={}&page=2\n", breaking=_QUERY),
    Form(name="XML element", text="<db>\n  <password>{}</password>\n</db>\n", breaking=_XML),
    Form(name="XML element with attributes", text='<apiToken type="x">{}</apiToken>\n', breaking=_XML),
    Form(name="XML attribute", text='<connection user="a" password="{}"/>\n', breaking=_XML),
    Form(name="XML key and value", text='<add key="ApiKey" value="{}" />\n', breaking=_XML),
    Form(name="XML property", text='<property name="password" value="{}"/>\n', breaking=_XML),
    Form(name="XML of Android", text='<string name="api_key">{}</string>\n', breaking=_XML),
    Form(name="property list", text="<key>Password</key>\n<string>{}</string>\n", breaking=_XML),
    Form(name="option", text="mytool --password {} --verbose\n", breaking=_SHELL + ","),
    Form(name="option with =", text="mytool --api-key={} --verbose\n", breaking=_SHELL + ","),
    Form(name="option, quoted", text="mytool --password '{}' --verbose\n"),
    Form(name="mysql -p", text="mysql -u root -p{} shop\n", breaking=_SHELL),
    Form(name="sshpass -p", text="sshpass -p {} ssh app@host\n", breaking=_SHELL),
    Form(name="docker login -p", text="docker login -u app -p {} registry.example\n", breaking=_SHELL),
    Form(name="curl -u", text="curl -u admin:{} https://example.org\n", breaking=_SHELL),
    Form(name="redis-cli -a", text="redis-cli -h cache -a {} ping\n", breaking=_SHELL),
    Form(name="Dockerfile, ENV", text="FROM x\nENV DB_PASSWORD={}\n", breaking="$"),
    Form(name="Dockerfile, ENV with a space", text="FROM x\nENV DB_PASSWORD {}\n", breaking="$"),
    Form(name="Dockerfile, ARG", text="ARG NPM_TOKEN={}\n", breaking="$"),
    Form(name="Dockerfile, RUN export", text="RUN export TOKEN={} && make\n", breaking=_SHELL + ","),
    Form(name="docker run -e", text="docker run -e API_TOKEN={} image\n", breaking=_SHELL + ","),
    Form(name="redis.conf", text="requirepass {}\n", breaking="#"),
    Form(name=".netrc", text="machine h login u password {}\n", breaking="&;,()<>|"),
    Form(name="prose", text="can you check? the password is {} and it fails\n", breaking="&;,()<>|"),
    Form(name="prose with a colon", text="my API key: {}\n", breaking="&;,()<>|"),
    Form(name="SQL, IDENTIFIED BY", text="CREATE USER app@'%' IDENTIFIED BY '{}';\n"),
    Form(name="SQL, IDENTIFIED WITH", text="ALTER USER a IDENTIFIED WITH mysql_native_password BY '{}';\n"),
    Form(name="SQL, WITH PASSWORD", text="CREATE LOGIN app WITH PASSWORD = N'{}';\n"),
    Form(name="docker config", text='{"auths": {"https://r.example/v1/": {"auth": "{}"}}}\n'),
    Form(name=".npmrc", text="//registry.example/:_authToken={}\n", breaking="#$;"),
    Form(name="code, C array", text='const char apiKey[] = "{}";\n'),
    Form(name="code, Visual Basic", text='Dim password As String = "{}"\n'),
    Form(name="code, three quotes", text='password = """{}"""\n'),
    Form(name="code, in parentheses", text='SECRET_KEY = (\n    "{}"\n)\n'),
    Form(name="code, PHP define", text="define('AUTH_KEY',         '{}');\n"),
    Form(name="code, pair of user and password", text='auth=("admin", "{}")\n'),
    Form(name="code, NetworkCredential", text='new NetworkCredential("user", "{}")\n'),
    Form(name="code, getConnection", text='DriverManager.getConnection(url, "app", "{}");\n'),
    Form(name="code, jwt.sign", text="jwt.sign(payload, '{}')\n"),
    Form(name="code, hmac.new", text='hmac.new(b"{}", msg, sha256)\n'),
    Form(name="PowerShell, secure string", text='ConvertTo-SecureString "{}" -AsPlainText -Force\n', breaking="$"),
    Form(name="YAML, block", text="password: |\n  {}\n", breaking=_YAML),
    Form(name="YAML, folded block", text="api_token: >-\n  {}\n", breaking=_YAML),
    Form(name="YAML, flow", text="db: {user: app, password: {}}\n", breaking=_YAML + "()|;<>"),
    Form(name="cookie", text="Cookie: theme=dark; session={}\n", breaking=";,="),
    Form(name="cookie, set", text="Set-Cookie: sessionid={}; Path=/\n", breaking=";,="),
    Form(name="Oracle", text="jdbc:oracle:thin:app/{}@db:1521:x\n", breaking=_URL + _SHELL),
    Form(name="key of storage", text="AccountName=a;AccountKey={}==;Suffix=x\n", breaking=_CONNECTION),
    Form(name="curl --user", text="curl --user admin:{} https://x\n", breaking=_SHELL),
    Form(name="openssl -k", text="openssl enc -k {} -in x\n", breaking=_SHELL),
    Form(name="az login -p", text="az login -u app -p {} --tenant t\n", breaking=_SHELL),
    Form(name="numbered line", text="  12: API_TOKEN={}\n", breaking="#$"),
    Form(name="SetEnv", text="SetEnv API_SECRET {}\n", breaking="#"),
    Form(name="private key, 0x", text="PRIVATE_KEY=0x{}\n", breaking="#$"),
    Form(name="wpa", text='psk="{}"\n'),
    Form(name="meta", text='<meta name="api-token" content="{}">\n', breaking=_XML),
    Form(name="Markdown, bold", text="**Password:** {}\n", breaking="*&;,()<>|"),
    Form(name="Markdown, table", text="| API key | {} |\n", breaking="&;,()<>|"),
    Form(name="prose, German", text="das Passwort ist {}\n", breaking="&;,()<>|"),
    Form(name="prose, French", text="mot de passe : {}\n", breaking="&;,()<>|"),
    Form(name="prose, Spanish", text="la contraseña es {}\n", breaking="&;,()<>|"),
)


def draw_values(form: Form, alphabet: str, count: int, seed: int = 0) -> Iterator[str]:
    """Draw values of every length in turn, of the characters that may be in a form."""
    characters = [char for char in ALPHABETS[alphabet] if char not in form.breaking]
    drawn = random.Random(f"{form.name}/{alphabet}/{seed}")
    for number in range(count):
        length = SHORTEST + number % (LONGEST - SHORTEST + 1)
        yield "".join(drawn.choices(characters, k=length))


def leaks(value: str, masked: str) -> bool:
    """Whether a part of a value can still be read."""
    return any(value[at : at + SURVIVING] in masked for at in range(len(value) - SURVIVING + 1))
