-- Snabb's model of apps and links over the elements of docs/click.md. `host` is the router: see lib.rs.
local host = ...

-- Names of ports, sorted: port numbers depend on nothing else, so that a graph that changes keeps those of the other ports.
local function sorted(set)
  local names = {}
  for name in pairs(set) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

-- A text in quotes, unless Click's language takes it as it is: `//` and `/*` begin comments outside of quotes.
local function quoted(value)
  local text = tostring(value)
  local is_plain = text:match("^[%w_.:/+*%%<>=!&|() -]*$") and not text:find("/[/*]")
  if type(value) ~= "string" or is_plain then
    return text
  end
  return '"' .. text:gsub('[\\"]', "\\%0") .. '"'
end

-- The arguments of an element: a text as it is, or a table whose list is by position and whose other keys are keywords.
local function arguments(arg)
  if type(arg) ~= "table" then
    return arg == nil and "" or tostring(arg)
  end
  local all = {}
  for _, value in ipairs(arg) do
    all[#all + 1] = quoted(value)
  end
  local keywords = {}
  for key in pairs(arg) do
    if type(key) == "string" then
      keywords[key] = true
    end
  end
  for _, key in ipairs(sorted(keywords)) do
    all[#all + 1] = key .. " " .. quoted(arg[key])
  end
  return table.concat(all, ", ")
end

-- What an app consists of while a graph is written: elements, connections between them, and its ports.
local function parts(name, used)
  local it = { name = name, elements = {}, connections = {}, inputs = sorted(used.inputs), outputs = sorted(used.outputs) }
  it.into, it.from = {}, {}
  function it.element(suffix, class, text)
    local full = name .. suffix
    it.elements[#it.elements + 1] = ("%s :: %s(%s);"):format(full, class, text or "")
    return full
  end
  function it.connect(a, output, input, b)
    it.connections[#it.connections + 1] = ("%s [%d] -> [%d] %s;"):format(a, output, input, b)
  end
  -- All inputs of the app are input 0 of this element.
  function it.enter(element)
    for _, port in ipairs(it.inputs) do
      it.into[port] = { element, 0 }
    end
  end
  -- The outputs of the app are the outputs of this element, in the order of their names.
  function it.leave(element)
    for number, port in ipairs(it.outputs) do
      it.from[port] = { element, number - 1 }
    end
  end
  -- As `leave`, through an element with as many outputs if the app has several.
  function it.leave_by(class, element)
    if #it.outputs > 1 then
      local last = it.element("_out", class, class == "Tee" and tostring(#it.outputs) or "")
      it.connect(element, 0, 0, last)
      element = last
    end
    it.leave(element)
  end
  return it
end

-- Classes. `build` makes the parts of an app; `ports` has the least and the highest number of inputs, then of outputs.
local function class(title, ports, build)
  return { title = title, ports = ports, build = build }
end

local basic = {}
basic.Source = class("Source", { 0, 0, 1, 1024 }, function(it, arg)
  local size = type(arg) == "table" and arg.size or arg
  it.leave_by("Tee", it.element("", "InfiniteSource", "LENGTH " .. (tonumber(size) or 60)))
end)
basic.Join = class("Join", { 1, 1024, 1, 1 }, function(it)
  local element = it.element("", "Null")
  it.enter(element)
  it.leave(element)
end)
basic.Split = class("Split", { 1, 1024, 1, 1024 }, function(it)
  local element = it.element("", "Null")
  it.enter(element)
  it.leave_by("RoundRobinSwitch", element)
end)
basic.Sink = class("Sink", { 0, 1024, 0, 0 }, function(it)
  it.enter(it.element("", "Discard"))
end)
basic.Tee = class("Tee", { 1, 1024, 1, 1024 }, function(it)
  local element = it.element("", "Null")
  it.enter(element)
  it.leave_by("Tee", element)
end)
basic.Truncate = class("Truncate", { 1, 1024, 1, 1 }, function(it, arg)
  local length = type(arg) == "table" and arg.n or arg
  local element = it.element("", "Truncate", tostring(length))
  it.enter(element)
  it.leave(element)
end)
-- Packets go round: a copy of each leaves, and it is put into the queue again. A full queue takes no further packets. The rate
-- ends a round of the worker, which otherwise takes packets until the queue is empty.
basic.Repeater = class("Repeater", { 1, 1024, 1, 1 }, function(it, arg)
  local rate = type(arg) == "table" and arg.rate or 1000000
  local queue = it.element("", "Queue", "1000")
  local reader, copies = it.element("_next", "RatedUnqueue", tostring(rate)), it.element("_out", "Tee", "2")
  it.connect(queue, 0, 0, reader)
  it.connect(reader, 0, 0, copies)
  it.connect(copies, 1, 0, queue)
  it.enter(queue)
  it.from[it.outputs[1]] = { copies, 0 }
end)

local files = {}
files.PcapReader = class("PcapReader", { 0, 0, 1, 1 }, function(it, arg)
  it.leave(it.element("", "FromDump", quoted(arg)))
end)
files.PcapWriter = class("PcapWriter", { 1, 1024, 0, 0 }, function(it, arg)
  it.enter(it.element("", "ToDump", quoted(arg)))
end)

local interfaces = {}
interfaces.Interface = class("Interface", { 0, 1024, 0, 1 }, function(it, arg)
  local name = type(arg) == "table" and arg.ifname or arg
  if #it.outputs > 0 then
    it.leave(it.element("", "FromDevice", quoted(name)))
  end
  if #it.inputs > 0 then
    local queue = it.element("_queue", "Queue", "1000")
    it.connect(queue, 0, 0, it.element("_tx", "ToDevice", quoted(name)))
    it.enter(queue)
  end
end)

-- Elements under their names in Click. A port is its number, or a name that ends with it; a name without one is port 0.
local click = setmetatable({}, {
  __index = function(all, name)
    local made = class(name, { 0, 1024, 0, 1024 }, function(it, arg)
      local element = it.element("", name, arguments(arg))
      for _, side in ipairs({ { it.inputs, it.into }, { it.outputs, it.from } }) do
        for _, port in ipairs(side[1]) do
          side[2][port] = { element, tonumber(port:match("%d+$") or 0) }
        end
      end
    end)
    rawset(all, name, made)
    return made
  end,
})

local config = {}

function config.new()
  return { apps = {}, links = {}, order = {}, link_order = {} }
end

function config.app(c, name, kind, arg)
  assert(type(name) == "string" and name:match("^[%a_][%w_]*$"), "config.app: a name consists of letters, digits and _")
  kind = type(kind) == "string" and click[kind] or kind
  assert(type(kind) == "table" and kind.build, "config.app: " .. name .. " needs a class, such as basic_apps.Sink or \"Counter\"")
  if not c.apps[name] then
    c.order[#c.order + 1] = name
  end
  c.apps[name] = { class = kind, arg = arg }
end

function config.parse_link(spec)
  local a, output, b, input = spec:match("^%s*([%w_]+)%.([%w_]+)%s*%->%s*([%w_]+)%.([%w_]+)%s*$")
  assert(a, "config.link: '" .. tostring(spec) .. "' is no link: write \"a.output -> b.input\"")
  return a, output, b, input
end

function config.link(c, spec)
  local a, output, b, input = config.parse_link(spec)
  local whole = ("%s.%s -> %s.%s"):format(a, output, b, input)
  if not c.links[whole] then
    c.links[whole] = { a, output, b, input }
    c.link_order[#c.link_order + 1] = whole
  end
end

-- The counter of a link.
local function counter(link)
  return ("link_%s_%s_%s_%s"):format(unpack(link))
end

-- The ports that the links use, by app.
local function used_ports(c)
  local used = {}
  for _, name in ipairs(c.order) do
    used[name] = { inputs = {}, outputs = {} }
  end
  for _, whole in ipairs(c.link_order) do
    local a, output, b, input = unpack(c.links[whole])
    for _, name in ipairs({ a, b }) do
      assert(used[name], whole .. ": there is no app " .. name .. ": add it by config.app")
    end
    assert(not used[a].outputs[output], whole .. ": output " .. output .. " of " .. a .. " has another link: put a Tee there")
    used[a].outputs[output] = true
    used[b].inputs[input] = true
  end
  return used
end

local function check_ports(name, app, it)
  local low_in, high_in, low_out, high_out = unpack(app.class.ports)
  for _, side in ipairs({ { "inputs", #it.inputs, low_in, high_in }, { "outputs", #it.outputs, low_out, high_out } }) do
    local what, count, low, high = unpack(side)
    local fits = count >= low and count <= high
    assert(fits, ("%s (%s) has %d %s that are linked, but needs %d to %d"):format(name, app.class.title, count, what, low, high))
  end
end

-- The graph in Click's language.
function config.text(c)
  local used, lines, made = used_ports(c), {}, {}
  for _, name in ipairs(c.order) do
    local app, it = c.apps[name], parts(name, used[name])
    check_ports(name, app, it)
    app.class.build(it, app.arg)
    made[name] = it
    for _, line in ipairs(it.elements) do
      lines[#lines + 1] = line
    end
  end
  for _, name in ipairs(c.order) do
    for _, line in ipairs(made[name].connections) do
      lines[#lines + 1] = line
    end
  end
  for _, whole in ipairs(c.link_order) do
    local link = c.links[whole]
    local from, to = made[link[1]].from[link[2]], made[link[3]].into[link[4]]
    lines[#lines + 1] = ("%s [%d] -> %s :: Counter -> [%d] %s;"):format(from[1], from[2], counter(link), to[2], to[1])
  end
  return table.concat(lines, "\n") .. "\n"
end

local engine = { configuration = config.new(), app_table = {}, link_table = {} }

-- An app of the graph that runs: its handlers are those of its first element.
local function running(name, app)
  local it = { appname = name, class = app.class.title }
  function it:read(handler)
    return host.read(name .. "." .. handler)
  end
  function it:write(handler, value)
    host.write(name .. "." .. handler, value == nil and "1" or tostring(value))
  end
  return it
end

function engine.configure(c)
  host.configure(config.text(c))
  engine.configuration = c
  engine.app_table, engine.link_table = {}, {}
  for name, app in pairs(c.apps) do
    engine.app_table[name] = running(name, app)
  end
  for whole, link in pairs(c.links) do
    engine.link_table[whole] = counter(link)
  end
end

function engine.now()
  return host.now()
end

-- Packets and bytes that have passed a link.
function engine.link_stats(whole)
  local name = assert(engine.link_table[whole], "there is no link " .. tostring(whole))
  return { txpackets = tonumber(host.read(name .. ".count")), txbytes = tonumber(host.read(name .. ".byte_count")) }
end

function engine.report_links()
  print("link report:")
  for _, whole in ipairs(sorted(engine.link_table)) do
    print(("%20d sent on %s"):format(engine.link_stats(whole).txpackets, whole))
  end
end

function engine.report_apps()
  print("apps report:")
  for _, name in ipairs(engine.configuration.order) do
    print(("%20s %s"):format(name, engine.configuration.apps[name].class.title))
  end
end

function engine.report(options)
  if options == nil or options.showlinks then
    engine.report_links()
  end
  if options and options.showapps then
    engine.report_apps()
  end
end

function engine.main(options)
  options = options or {}
  local done, finish = options.done, options.duration and engine.now() + options.duration
  assert(not (done and finish), "engine.main: give duration or done, not both")
  repeat
    local left = finish and finish - engine.now() or 0.01
    if left > 0 then
      host.sleep(math.min(left, 0.01))
    end
  until done and done() or finish and engine.now() >= finish
  if not options.no_report then
    engine.report(options.report)
  end
end

function engine.stop()
  engine.configure(config.new())
end

local modules = {
  ["core.config"] = config,
  ["core.app"] = engine,
  ["apps.basic.basic_apps"] = basic,
  ["apps.pcap.pcap"] = files,
  ["apps.volley.interface"] = interfaces,
  ["apps.click"] = click,
}
for name, module in pairs(modules) do
  package.preload[name] = function()
    return module
  end
end
-- As in Snabb's shell.
_G.config, _G.engine = config, engine

-- A process that ends at once leaves its daemon and its folder behind.
function os.exit()
  error("os.exit is not supported, because the daemon of the program would go on: return from the program, or raise an error", 2)
end
