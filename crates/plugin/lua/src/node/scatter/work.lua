-- The work for the packets of one class, which the ways share.
local function work(v, set, ttl, tos)
  if v:count(set) == 0 then
    return
  end
  local good, bad = v:check_ip4(set)
  v:drop(bad, "invalid")
  v:put("ip4.ttl", ttl, good)
  v:put("ip4.tos", tos, good)
end
