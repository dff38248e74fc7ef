-- Bit masks: packets stay where they are, and each module visits those whose bit is set.
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
  local complex = v:between("udp.sport", 0, 999)
  work(v, v:minus(v:all(), complex), 63, 16)
  work(v, complex, 62, 32)
end
