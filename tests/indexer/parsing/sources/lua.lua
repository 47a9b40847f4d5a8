local json = require("lib.json")
local M = {}

-- Doc here.
function M.run(a)
  return M.go(a)
end
function M:meth() self:other() end
local function loc() print("x") end
M.assign = function(x) return x end
LIMIT = 10
