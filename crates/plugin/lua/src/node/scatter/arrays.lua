-- Click's way: the packets of each class are put into an array of their own.
local function work(v, set, ttl, tos)
  if v:count(set) == 0 then
    return
  end
  local good, bad = v:check_ip4(set)
  v:drop(bad, "invalid")
  v:put("ip4.ttl", ttl, good)
  v:put("ip4.tos", tos, good)
end

function vector(v)
  local complex, fast = v:split(v:between("udp.sport", 0, 999))
  work(v, fast, 63, 16)
  work(v, complex, 62, 32)
end
