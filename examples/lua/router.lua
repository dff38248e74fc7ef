-- An IPv4 router for two interfaces (docs/lua.md): a fast path for whole vectors, a slow path for single packets.

-- Settings: the addresses of the router, and routes with a gateway.
local ports = {
  pg0 = { address = "10.0.0.1", subnet = "10.0.0.0/24" },
  pg1 = { address = "10.0.1.1", subnet = "10.0.1.0/24" },
}
local gateways = {
  ["10.9.0.0/16"] = { interface = "pg1", via = "10.0.1.2" },
}

-- The table: workers read it without waiting while the control thread changes it. A route without a MAC address is incomplete.
local routes, own = volley.lpm("routes"), {}
for name, port in pairs(ports) do
  port.name, port.mac = name, volley.interface(name).mac
  own[port.address] = true
  routes:add(port.subnet, { interface = name })
  routes:add(port.address, { interface = name })
end
for prefix, route in pairs(gateways) do
  routes:add(prefix, route)
end

-- The fast path. Everything that is not forwarded at once goes to the slow path, over a bounded queue.
function vector(v)
  local mine = v:to_me()
  local valid, invalid = v:check_ip4(mine)
  local hit = v:lookup(routes, valid)
  if v:forward(hit) then
    return
  end
  local left = v:minus(v:all(), hit)
  v:drop(v:minus(left, mine), "not-for-us")
  v:drop(invalid, "invalid")
  local ip = v:ethertype(0x0800, v:minus(v:minus(mine, hit), invalid))
  v:slow(v:either(v:ethertype(0x0806, left), ip))
  v:drop(v:rest(), "unsupported")
end

-- The slow path: ARP, packets for the router, ICMP errors, neighbors that are not known.
local function arp(p, port)
  local sender = p:get("arp.spa")
  local route = sender and routes:find(sender)
  if route and route.interface == port.name and not route.via and not own[sender] then
    routes:neighbor(sender, { interface = port.name, mac = p:get("arp.sha") })
  end
  if p:get("arp.op") == 1 and p:get("arp.tpa") == port.address then
    return p:arp_reply(port.mac) or p:drop("invalid")
  end
  p:drop("consumed")
end

local function for_router(p, port)
  if p:get("icmp.type") == 8 then
    return p:echo_reply() or p:drop("invalid")
  elseif p:get("udp.dport") and p:icmp_error(3, 3, port.address) then
    return
  end
  p:drop("unsupported")
end

function packet(p)
  local port = ports[p:interface()]
  if p:get("eth.type") == 0x0806 then
    return arp(p, port)
  end
  local destination = p:get("ip4.dst")
  if own[destination] then
    return for_router(p, port)
  elseif p:get("ip4.ttl") < 2 then
    return p:icmp_error(11, 0, port.address) or p:drop("ttl-expired")
  end
  local route = routes:find(destination)
  if not route then
    return p:icmp_error(3, 0, port.address) or p:drop("no-route")
  elseif p:get("ip4.ihl") > 5 or route.mac then
    return p:drop("unsupported") -- options, or longer than the MTU
  end
  local out = ports[route.interface]
  if p:arp_request(out.mac, out.address, route.via or destination) then
    p:send(out.name)
  end
end
