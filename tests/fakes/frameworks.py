"""A small source for each framework whose registrations are read, and what is registered there."""

from __future__ import annotations

# By path: the text, and the registrations as `kind name = detail -> handler : help`, empty parts left out.
FRAMEWORKS: dict[str, tuple[str, tuple[str, ...]]] = {
    "native/CMakeLists.txt": (
        """project(native)
option(ENABLE_SSL "Build with TLS." OFF)
OPTION(BUILD_SHARED_LIBS "Build shared libraries" ON)
option(NO_DEFAULT "Off unless it is given")
set(BUFFER_SIZE 4096 CACHE STRING "Bytes of a buffer")
set(LOCAL_ONLY 1)
""",
        (
            "setting ENABLE_SSL = OFF : cmake: Build with TLS.",
            "setting BUILD_SHARED_LIBS = ON : cmake: Build shared libraries",
            "setting NO_DEFAULT = OFF : cmake: Off unless it is given",
            "setting BUFFER_SIZE = 4096 : cmake: Bytes of a buffer",
        ),
    ),
    "meson/meson_options.txt": (
        "option('docs', type: 'boolean', value: false, description: 'Build the manual')\n",
        ("setting docs = false : meson: Build the manual",),
    ),
    "autotools/configure.ac": (
        """AC_INIT([shop], [1.0])
AC_ARG_ENABLE([docs], AS_HELP_STRING([--disable-docs], [don't build docs]))
AC_ARG_WITH([zlib],
  [AS_HELP_STRING([--with-zlib=DIR], [use zlib])])
""",
        ("flag --disable-docs : configure: don't build docs", "flag --with-zlib : configure: use zlib"),
    ),
    "releases/Rakefile": (
        "namespace :release do\n  desc 'Tag it'\n  task :tag do\n  end\nend\n",
        ("command rake release:tag : Tag it",),
    ),
    "spring_shop/OrdersClient.java": (
        """@FeignClient(name = "orders", path = "/api")
public interface OrdersClient {
  @GetMapping("/orders/{id}")
  Order get(@PathVariable long id);
}

interface Users { @GET("/users/{id}") Call<User> user(@Path("id") long id); }

class Mails {
  @KafkaListener(topics = "${app.topics.refunds:refunds}", groupId = "mails")
  void on(String message) {}
}
""",
        (
            "client GET /api/orders/{id} = orders -> OrdersClient.get",
            "client GET /users/{id} -> Users.user",
            "topic refunds = consumed -> on",
        ),
    ),
    "spring_shop/Orders.kt": (
        """package shop

@RestController
class Orders {
  @PostMapping("/orders")
  fun place(@RequestBody order: Order): Order = order

  @KafkaListener(topics = ["orders.placed"], groupId = "x")
  fun on(message: String) {}
}
""",
        ("route POST /orders -> place", "topic orders.placed = consumed -> on"),
    ),
    "aspnet_shop/OrdersController.cs": (
        """[ApiController]
[Route("api/[controller]")]
public class OrdersController : ControllerBase {
  [HttpGet("{id}")]
  public Order Get(int id) { return null; }
  [HttpPost, Authorize]
  public Order Create() { return null; }
}
public interface IUsers {
  [Get("/users/{id}")]
  Task<User> Get(int id);
}
class Program { void Main() {
  var v1 = app.MapGroup("/v1");
  v1.MapPost("/carts", AddCart);
} }
""",
        (
            "route GET /api/Orders/{id} -> Get",
            "route POST /api/Orders -> Create",
            "client GET /users/{id} -> IUsers.Get",
            "route POST /v1/carts -> AddCart",
        ),
    ),
    "sidekiq_shop/orders.rb": (
        """class SyncOrderJob
  include Sidekiq::Job
  def perform(id); end
end

class Orders
  def place
    SyncOrderJob.set(wait: 1).perform_async(1) if Flipper.enabled?(:sync_orders)
  end
end
""",
        (
            "task SyncOrderJob = Sidekiq::Job -> SyncOrderJob",
            "topic SyncOrderJob = produced -> Orders.place",
            "feature sync_orders = read -> Orders.place",
        ),
    ),
    "charts/shop/templates/web.yaml": (
        """apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "shop.fullname" . }}-web
  labels:
    {{- include "shop.labels" . | nindent 4 }}
spec:
  containers:
    - name: {{ .Chart.Name }}
      {{- with .Values.context }}
      securityContext: {{ toYaml . }}
      {{- end }}
      env:
        - name: SHOP_URL
          value: {{ .Values.url | quote }}
""",
        ("resource Deployment/shop.fullname-web", "variable SHOP_URL = Values.url"),
    ),
    "charts/shop/values.yaml": (
        "image: shop\nenv:\n  LOG_LEVEL: info\nextraEnv:\n  - name: SHOP_MODE\n    value: fast\n",
        ("variable LOG_LEVEL = info", "variable SHOP_MODE = fast"),
    ),
    "deployed/config.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shop\ndata:\n  SHOP_MODE: fast\n  nginx.conf: x\n",
        ("resource ConfigMap/shop", "variable SHOP_MODE = fast"),
    ),
    "deployed/Dockerfile": (
        'FROM shop\nARG VERSION\nENV SHOP_PORT=80 \\\n    SHOP_NAME="a b"\nENV SHOP_OLD value\nRUN LOCAL=1 make\n',
        ("variable VERSION", "variable SHOP_PORT = 80", "variable SHOP_NAME = a b", "variable SHOP_OLD = value"),
    ),
    "deployed/.env.example": ("# shop\nSHOP_PORT=80\n", ("variable SHOP_PORT = 80",)),
    "deployed/start.sh": ("export SHOP_PORT=80\nLOCAL=1\n", ("variable SHOP_PORT = 80",)),
    "flags/checkout.ts": (
        """export async function choose(ctx) {
  const on = await ldClient.variation("new-checkout", ctx, false);
  return on && unleash.isEnabled("fast-path") && button.isEnabled("left") && useFeatureIsOn("dark-mode");
}
""",
        (
            "feature new-checkout = read -> choose",
            "feature fast-path = read -> choose",
            "feature dark-mode = read -> choose",
        ),
    ),
    "flags/flagd.json": (
        '{"flags": {"new-checkout": {"state": "ENABLED", "variants": {"on": true}}}}\n',
        ("feature new-checkout = set",),
    ),
    "flask_shop/views.py": (
        '''bp = Blueprint("shop", __name__, url_prefix="/shop")

@bp.route("/items", methods=["GET", "POST"])
def items():
    """List the items."""

@bp.get("/items/<int:number>")
def item(number): ...

app.add_url_rule("/health", view_func=health)
cache.get("/not/a/route")
''',
        (
            "route GET|POST /shop/items -> items : List the items.",
            "route GET /shop/items/<int:number> -> item",
            "route GET /health -> health",
        ),
    ),
    "fastapi_shop/users.py": (
        '''router = APIRouter()

@router.post("/{user_id}/orders")
async def create_order(user_id: int):
    """Order something."""

@router.get("/")
async def list_users(): ...

class OrderIn(BaseModel):
    """What somebody orders."""
''',
        (
            "route POST /users/{user_id}/orders -> create_order : Order something.",
            "route GET /users/ -> list_users",
            "model OrderIn = BaseModel -> OrderIn : What somebody orders.",
        ),
    ),
    "fastapi_shop/main.py": (
        'app.include_router(users.router, prefix="/users")\n',
        (),
    ),
    "django_shop/urls.py": (
        """item_urls = [path("<int:pk>/", views.item, name="item")]
urlpatterns = [
    path("items/", include(item_urls)),
    path("api/", include("django_shop.api.urls")),
    re_path(r"^old/$", views.old),
]
""",
        ("route /items/<int:pk>/ -> views.item", "route ^old/$ -> views.old"),
    ),
    "django_shop/api/urls.py": (
        'urlpatterns = [path("orders/", views.orders)]\n',
        ("route /api/orders/ -> views.orders",),
    ),
    "django_shop/models.py": (
        '''class Order(models.Model):
    """Something that was ordered."""

@receiver(post_save, sender=Order)
def tell_warehouse(sender, **kwargs): ...
''',
        (
            "model Order = models.Model -> Order : Something that was ordered.",
            "event post_save = handled -> tell_warehouse",
        ),
    ),
    "django_shop/signals.py": ("order_placed = Signal()\n", ("event order_placed = declared",)),
    "django_shop/management/commands/ship.py": (
        'class Command(BaseCommand):\n    help = """Ship what was ordered."""\n',
        ("command manage.py ship -> Command : Ship what was ordered.",),
    ),
    "django_shop/settings.py": (
        """# How many orders are shipped at once.
BATCH_SIZE = 20
DEBUG = envbool("DEBUG", "True")
EMAIL = os.environ.get("SHOP_EMAIL", "shop@example.org")  # who is told
TOKEN = os.environ["SHOP_TOKEN"]
""",
        (
            "setting BATCH_SIZE = 20 : How many orders are shipped at once.",
            'environment DEBUG = "True"',
            'setting DEBUG = envbool("DEBUG", "True")',
            'environment SHOP_EMAIL = "shop@example.org"',
            'setting EMAIL = os.environ.get("SHOP_EMAIL", "shop@example.org") : who is told',
            "environment SHOP_TOKEN",
            'setting TOKEN = os.environ["SHOP_TOKEN"]',
        ),
    ),
    "py_tools/cli.py": (
        '''parser.add_argument("-t", "--timeout", type=float, default=30.0, help="Seconds to " "wait.")
parser.add_argument("--force", action="store_true")
parser.add_argument("url", help="What to fetch.")
shipping = subparsers.add_parser("ship", help="Ship orders.")

@cli.command("pack-all")
@click.option("--boxes", "-b", default=3, help="How many boxes.")
def pack(boxes):
    """Pack everything."""

@app.command()
def send_mail(name: str, retries: int = typer.Option(5, help="How often.")):
    """Send a mail."""

@shared_task
def clean_up(): ...

@app.task(queue="slow")
def report(): ...
''',
        (
            "flag -t, --timeout = 30.0 : Seconds to wait.",
            "flag --force = False",
            "flag url : What to fetch.",
            "command ship : Ship orders.",
            "command pack-all -> pack : Pack everything.",
            "flag --boxes, -b = 3 : How many boxes.",
            "command send-mail -> send_mail : Send a mail.",
            "flag --retries = 5 : How often.",
            "task clean_up -> clean_up",
            "task report = slow -> report",
        ),
    ),
    "py_tools/config.py": (
        '''class Settings(BaseSettings):
    port: int = 8000
    """Where it listens. Always."""
    secret: str = Field("none", description="What signs the cookies.")
    boxes: int = Field(default=3, validation_alias="SHOP_BOXES")

class MailOptions(pydantic.BaseModel):
    sender: str = Field("shop@example.org", validation_alias="MAIL_SENDER")

class Order(BaseModel):
    boxes: int = 1

@dataclass
class RetryConfig:
    attempts: int = 3  # before it gives up
''',
        (
            "setting port = 8000 -> Settings : Where it listens",
            'setting secret = "none" -> Settings : What signs the cookies.',
            "setting boxes = 3 -> Settings",
            "environment SHOP_BOXES = 3",
            "model MailOptions = pydantic.BaseModel -> MailOptions",
            "model Order = BaseModel -> Order",
            'setting sender = "shop@example.org" -> MailOptions',
            'environment MAIL_SENDER = "shop@example.org"',
            "setting attempts = 3 -> RetryConfig : before it gives up",
        ),
    ),
    "express_shop/server.js": (
        """const port = process.env.PORT || 3000
// process.env.COMMENTED
app.get('/items/:id', requireUser, showItem)
router.route('/orders').get(listOrders).post((req, res) => {})
axios.get('/items/1', options)
emitter.on('order.placed', tellWarehouse)
emitter.emit('order.shipped', order)
mongoose.model('Order', orderSchema)
cron.schedule('0 3 * * *', cleanUp)
app.set('shelves', './shelves') // a setting of express
app.enable('etag')
cache.set('shelves', 3)
select.define('shelf', shelf)
""",
        (
            "environment PORT = 3000",
            "route GET /items/:id -> showItem",
            "route GET /orders -> listOrders",
            "route POST /orders",
            "event order.placed = handled -> tellWarehouse",
            "event order.shipped = emitted",
            "model Order = mongoose.model",
            "task cleanUp = 0 3 * * * -> cleanUp",
            "setting shelves = './shelves'",
            "setting etag = true",
            "client GET /items/1",
        ),
    ),
    "fastify_shop/routes.ts": (
        """fastify.route({ method: ['GET', 'HEAD'], url: '/items', handler: list })
fastify.delete('/items/:id', remove)
""",
        ("route GET|HEAD /items -> list", "route DELETE /items/:id -> remove"),
    ),
    "js_tools/cli.js": (
        """program.command('serve <folder>').description('Serve a folder.').option('-p, --port <port>', 'Where.', '80')
yargs.command('ship', 'Ship orders.').option('boxes', { alias: 'b', default: 3, describe: 'How many boxes.' })
""",
        (
            "command serve <folder> : Serve a folder.",
            "flag -p, --port <port> = '80' : Where.",
            "command ship : Ship orders.",
            "flag -b, --boxes = 3 : How many boxes.",
        ),
    ),
    "nest_shop/orders.controller.ts": (
        """@Controller('orders')
export class OrdersController {
  @Get(':id')
  findOne() {}
  @Post()
  create() {}
  @Cron('0 3 * * *')
  cleanUp() {}
  @OnEvent('order.placed')
  tell() {}
}
@Entity()
export class Order {}
""",
        (
            "route GET /orders/:id -> findOne",
            "route POST /orders -> create",
            "task cleanUp = 0 3 * * * -> cleanUp",
            "event order.placed = handled -> tell",
            "model Order = @Entity",
        ),
    ),
    "next_shop/src/app/api/(shop)/items/[id]/route.ts": (
        "export async function GET(request: Request) {}\nexport async function DELETE() {}\nfunction helper() {}\n",
        ("route GET /api/items/[id]", "route DELETE /api/items/[id]"),
    ),
    "next_shop/pages/api/orders/index.ts": (
        "export default function handler() {}\n",
        ("route ANY /api/orders",),
    ),
    "next_shop/prisma/schema.prisma": ("model Item {\n  id Int @id\n}\n", ("model Item = Prisma",)),
    "spring/OrderController.java": (
        """@RestController
@RequestMapping("/orders")
class OrderController {
    @Value("${shop.page-size:20}") int size;
    /** Show one order. */
    @GetMapping("/{id}")
    Order show() { return System.getenv("SHOP_ZONE"); }
    @RequestMapping(value = {"/new", "/create"}, method = RequestMethod.POST)
    void create() {}
    @Scheduled(cron = "0 0 * * * *")
    void cleanUp() {}
    @EventListener(OrderPlaced.class)
    void tell() {}
}
@Entity
class Order {}
""",
        (
            "setting shop.page-size = 20",
            "route GET /orders/{id} -> show : Show one order.",
            "environment SHOP_ZONE",
            "route POST /orders/new -> create",
            "route POST /orders/create -> create",
            "task cleanUp = 0 0 * * * * -> cleanUp",
            "event OrderPlaced = handled -> tell",
            "model Order = @Entity",
        ),
    ),
    "jaxrs/ItemResource.java": (
        """@Path("/items")
public class ItemResource {
    @GET
    @Path("{id}")
    public Item find() { return null; }
    @Option(names = {"-p", "--port"}, description = "Where it listens.", defaultValue = "80")
    int port;
}
""",
        ("route GET /items/{id} -> find", "flag -p, --port = 80 : Where it listens."),
    ),
    "go_shop/server.go": (
        """package main

import "github.com/labstack/echo/v4"

func routes(e *echo.Echo) {
	mux.HandleFunc("GET /v1/users", h.users)
	router.HandleFunc("/orders/{id}", showOrder).Methods("GET", http.MethodPut)
	api := e.Group("/api")
	api.GET("/items", listItems, auth)
	r.Route("/admin", func(r chi.Router) {
		r.Get("/stats", showStats)
	})
	client.Get("/items")
	zone := os.Getenv("SHOP_ZONE")
}

var root = &cobra.Command{Use: "ship [order]", Short: "Ship an order.", RunE: runShip}

func init() {
	root.Flags().StringVarP(&zone, "zone", "z", "eu", "Where it goes.")
	flag.Bool("dry-run", false, "Do nothing.")
	viper.SetDefault("retries", 3)
}

var flags = []cli.Flag{&cli.StringFlag{Name: "region", Value: "eu", Usage: "Where it is."}}

type Order struct {
	gorm.Model
	Port int `env:"SHOP_PORT" envDefault:"80"`
}
""",
        (
            "client GET /items -> routes",
            "route GET /v1/users -> h.users",
            "route GET|PUT /orders/{id} -> showOrder",
            "route GET /api/items -> listItems",
            "route GET /admin/stats -> showStats",
            "environment SHOP_ZONE",
            "command ship [order] -> runShip : Ship an order.",
            'flag -z, --zone = "eu" : Where it goes.',
            "flag --dry-run = false : Do nothing.",
            "setting retries = 3",
            'flag --region = "eu" : Where it is.',
            "model Order = gorm.Model -> Order",
            "environment SHOP_PORT = 80",
        ),
    ),
    "go_mode/mode.go": (
        'package mode\n\nconst EnvMode = "SHOP_MODE"\n\nvar mode = os.Getenv(EnvMode)\n',
        ("environment SHOP_MODE",),
    ),
    "go_shop/config/options.go": (
        'package config\n\nvar options = map[string]*value{\n\t"BASE_URL": {raw: "", rawValue: "http://localhost"},\n}\n',
        ('environment BASE_URL = "http://localhost"',),
    ),
    "sinatra/app.rb": (
        """set :port, 4567
get '/items/:id' do
  ENV.fetch('SHOP_ZONE', 'eu')
end
op.on('-p PORT', '--port PORT', 'Where it listens.') { |value| port = value }
class CleanUp
  include Sidekiq::Job
end
class Order < ApplicationRecord
end
""",
        (
            "setting port = 4567",
            "route GET /items/:id",
            "environment SHOP_ZONE = 'eu'",
            "flag -p PORT, --port PORT : Where it listens.",
            "task CleanUp = Sidekiq::Job -> CleanUp",
            "model Order = ApplicationRecord -> Order",
        ),
    ),
    "rails/config/routes.rb": (
        """Rails.application.routes.draw do
  root 'pages#home'
  namespace :api do
    resources :items, only: [:index, :show]
    get 'health', to: 'health#show'
  end
end
""",
        (
            "route GET / -> pages#home",
            "route GET /api/items -> items#index",
            "route GET /api/items/:id -> items#show",
            "route GET /api/health -> health#show",
        ),
    ),
    "rails/Rakefile": ("desc 'Ship everything'\ntask :ship do\nend\n", ("command rake ship : Ship everything",)),
    "laravel/routes/web.php": (
        """<?php
Route::prefix('admin')->group(function () {
    Route::get('/items/{id}', [ItemController::class, 'show']);
});
$zone = env('SHOP_ZONE', 'eu');
class Order extends Model {}
""",
        (
            "route GET /admin/items/{id} -> ItemController.show",
            "environment SHOP_ZONE = 'eu'",
            "model Order = Model -> Order",
        ),
    ),
    "symfony/ItemController.php": (
        """<?php
class ItemController {
    #[Route('/items/{id}', methods: ['GET'])]
    public function show() {}
}
""",
        ("route GET /items/{id} -> show",),
    ),
    "rust_tool/src/cli.rs": (
        """#[derive(Parser)]
pub struct Opts {
    /// Look into hidden files. And more.
    #[arg(long, short = 'H', default_value_t = false)]
    pub hidden: bool,
    #[arg(long = "jobs", help = "How many at once", env = "TOOL_JOBS")]
    threads: usize,
}
#[derive(Subcommand)]
enum Commands {
    /// Ship an order.
    ShipOrder { id: u32 },
}
fn build() {
    Arg::new("colour").long("colour").short('c').default_value("auto").help("When to colour.");
    std::env::var("TOOL_HOME");
}
#[get("/items/{id}")]
async fn show() {}
fn routes() { app.route("/orders", get(list).post(create)) }
""",
        (
            "flag -H, --hidden = false : Look into hidden files",
            "flag --jobs : How many at once",
            "environment TOOL_JOBS : How many at once",
            "command ship-order : Ship an order.",
            "flag -c, --colour = auto : When to colour.",
            "environment TOOL_HOME",
            "route GET /items/{id} -> show",
            "route GET /orders -> list",
            "route POST /orders -> create",
        ),
    ),
    "c_tool/main.c": (
        """static struct option long_options[] = {
    {"verbose", no_argument, 0, 'v'},
    {"file", required_argument, NULL, 'f'},
    {0, 0, 0, 0},
};
static struct function table[] = { {"sqrt", 1}, {"sin", 1} };
int main(void) {
    isoption(&text, 'n', "null-input", &found);
    return getenv("TOOL_HOME") != 0;
}
""",
        (
            "flag -v, --verbose",
            "flag -f, --file = takes a value",
            "flag -n, --null-input",
            "environment TOOL_HOME",
        ),
    ),
    "docs/configuration.md": (
        """# Configuration

| Variable | Default | Description |
|---|---|---|
| `SHOP_ZONE` | `eu` | Where orders go. |
| `--retries` | 3 | How often. |

- `shop.colour`: what the shop looks like

# History

| Name | Year |
|---|---|
| shop | 1999 |
""",
        (
            "environment SHOP_ZONE = eu : Where orders go.",
            "flag --retries = 3 : How often.",
            "setting shop.colour : what the shop looks like",
        ),
    ),
    "docs/server.md": (
        "## Server\n\n### `bodyLimit`\n\n+ Default: `1048576` (1MiB)\n\nThe largest body in bytes.\n",
        ("setting bodyLimit = 1048576 (1MiB) : The largest body in bytes.",),
    ),
    "docs/settings.rst": (
        ".. setting:: SHOP_DELAY\n\nSHOP_DELAY\n----------\n\nDefault: ``0``\n\nSeconds between two orders.\n",
        ("setting SHOP_DELAY = 0 : Seconds between two orders.",),
    ),
    "db/001_init.sql": (
        """CREATE TABLE IF NOT EXISTS "shop"."orders" (id int REFERENCES users (id));
CREATE UNIQUE INDEX orders_by_day ON shop.orders (day);
create or replace view open_orders as select * from shop.orders o join [dbo].[Order Items] i on i.id = o.id;
WITH recent AS (SELECT extract(year from day) FROM shop.orders) INSERT INTO archive SELECT * FROM recent;
UPDATE o SET x = 'from nowhere' FROM shop.orders o; -- from nothing
GO
SELECT 1 FROM {{ ref('stg_orders') }} WHERE a IS DISTINCT FROM b;
CREATE TRIGGER t AFTER UPDATE ON shop.orders EXECUTE FUNCTION f();
DROP TABLE old_orders; ALTER TABLE ONLY shop.orders ADD x int; TRUNCATE TABLE log;
""",
        (
            "access users = referenced -> shop.orders",
            "table shop.orders",
            "index orders_by_day = on shop.orders",
            "access dbo.Order Items = read -> open_orders",
            "access shop.orders = read -> open_orders",
            "table open_orders = view",
            "access archive = written",
            "access shop.orders = read",
            "access shop.orders = written",
            "access shop.orders = read",
            "access stg_orders = read",
            "access log = written",
            "access old_orders = dropped",
            "access shop.orders = altered",
        ),
    ),
    "shop/storage.py": (
        """class Order(Model):
    class Meta:
        db_table = "shop_order"
def save(db):
    db.execute("INSERT INTO orders (id) "
               "VALUES (1)")
    return db.execute('''
        select id from items where id = 1
    '''), "Select one from the list"
op.create_table("invoices", sa.Column("id"))
""",
        (
            "model Order = Model -> Order",
            "table shop_order -> Order",
            "access orders = written -> save",
            "access items = read -> save",
            "table invoices",
        ),
    ),
    "db/migrate/2_orders.rb": (
        "create_table :orders do |t|\nend\nadd_column :orders, :total, :integer\ndrop_table :carts\n",
        ("table orders", "access orders = altered", "access carts = dropped"),
    ),
    "src/Order.java": (
        '@Entity\n@Table(name = "orders")\nclass Order {}\n',
        ("model Order = @Entity", "table orders -> Order"),
    ),
    "api/openapi.yaml": (
        """openapi: 3.0.0
paths:
  /orders/{id}:
    parameters: []
    get:
      operationId: getOrder
      summary: Read an order
components:
  schemas:
    Order: {type: object}
""",
        ("route GET /orders/{id} -> getOrder : Read an order", "type Order = schema"),
    ),
    "api/swagger.json": (
        '{"swagger": "2.0", "basePath": "/v1",\n "paths": {"/carts": {\n  "post": {"summary": "Say \\"new\\""}}}}\n',
        ('route POST /v1/carts : Say "new"',),
    ),
    "api/events.yaml": (
        """asyncapi: 3.0.0
channels:
  placed:
    address: orders.placed
operations:
  onPlaced:
    action: receive
    channel: {$ref: '#/channels/placed'}
""",
        ("topic orders.placed = declared", "topic orders.placed = consumed -> onPlaced"),
    ),
    "api/shop.proto": (
        """syntax = "proto3";
package shop.v1;
// An order.
message Order { string id = 1; }
service Orders {
  rpc Get (Order) returns (Order);
}
""",
        ("type shop.v1.Order : An order.", "service shop.v1.Orders", "rpc shop.v1.Orders.Get"),
    ),
    "api/schema.graphql": (
        "type Query {\n  orders(first: Int): [Order!]!\n}\ntype Order {\n  id: ID!\n}\n",
        ("route QUERY orders", "type Order"),
    ),
    "infra/main.tf": (
        'resource "aws_sqs_queue" "jobs" {}\ndata "aws_ami" "image" {}\nvariable "region" {}\n',
        ("resource aws_sqs_queue.jobs", "resource data.aws_ami.image"),
    ),
    "infra/shop.yaml": (
        """apiVersion: v1
kind: Deployment
metadata:
  name: web
spec:
  env:
    - name: DATABASE_URL
      value: db
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
""",
        (
            "resource Deployment/web",
            "variable DATABASE_URL = db",
            "resource CronJob/nightly",
            "task nightly = 0 3 * * *",
        ),
    ),
    "infra/template.json": (
        '{"Resources": {\n  "Orders": {"Type": "AWS::DynamoDB::Table"}}}\n',
        ("resource Orders = AWS::DynamoDB::Table",),
    ),
    "docker-compose.yml": (
        "services:\n  db:\n    image: postgres\n    environment:\n      - PGPORT=5433\n",
        ("service db = postgres", "variable PGPORT = 5433"),
    ),
    ".github/workflows/test.yml": (
        "name: Tests\non:\n  schedule:\n    - cron: '0 5 * * 1'\njobs:\n  unit:\n    name: Unit tests\n",
        ("task Tests = 0 5 * * 1", "job unit = Tests : Unit tests"),
    ),
    ".gitlab-ci.yml": (
        "stages: [test]\n.base:\n  script: x\nlint:\n  stage: test\n  script: make lint\n",
        ("job lint = test",),
    ),
    "ops/crontab": ("# m h\n*/5 * * * * /usr/bin/sync --all\n", ("task /usr/bin/sync --all = */5 * * * *",)),
    "calls/client.py": (
        """def load(i):
    requests.get(f"{BASE}/orders/{i}?x=1", timeout=3)
    httpx.request("DELETE", "http://orders:8080/orders/" + str(i))
    cache.get("name")
    channel.basic_publish(exchange="", routing_key="mails", body=b"")
    consumer.subscribe(["orders.placed"])
""",
        (
            "client GET /orders/{i} -> load",
            "client DELETE /orders/{} = orders:8080 -> load",
            "topic mails = produced -> load",
            "topic orders.placed = consumed -> load",
        ),
    ),
    "calls/client.ts": (
        """async function load(id) {
  await fetch(`${API}/orders/${id}`, {method: 'POST'});
  await this.http.delete<Order>('/orders/' + id);
  await axios({method: 'put', url: '/carts'});
  map.get('/x');
  await producer.send({ topic: 'orders', messages: [] });
}
""",
        (
            "client POST /orders/${id} -> load",
            "client DELETE /orders/{} -> load",
            "client PUT /carts -> load",
            "topic orders = produced -> load",
        ),
    ),
    "calls/client.go": (
        """package calls

const Placed = "orders.placed"

func Load(id string) {
	http.NewRequest("POST", fmt.Sprintf("%s/orders", base), nil)
	http.NewRequestWithContext(ctx, http.MethodPut, base+"/orders/1", nil)
	use(&sarama.ProducerMessage{Topic: Placed})
}
""",
        ("client POST /orders -> Load", "client PUT /orders/1 -> Load", "topic orders.placed = produced -> Load"),
    ),
    "calls/Client.java": (
        """class Client {
  void load() {
    restTemplate.exchange(url + "/orders", HttpMethod.POST, null, Order.class);
    webClient.get().uri("http://visits/pets?x={x}", 1);
    rabbitTemplate.convertAndSend("mails", x);
  }
  @KafkaListener(topics = "orders", groupId = "g")
  void take(String text) {}
}
""",
        (
            "client POST /orders -> Client.load",
            "client GET /pets = visits -> Client.load",
            "topic mails = produced -> Client.load",
            "topic orders = consumed -> take",
        ),
    ),
}
