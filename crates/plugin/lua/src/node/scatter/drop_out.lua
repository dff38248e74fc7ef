-- MoonRoute's way: complex packets drop out and leave holes, over which the fast path goes on.
function vector(v)
  local complex = v:between("udp.sport", 0, 999)
  v:drop_out(complex)
  local _, bad = v:check_ip4()
  v:drop_out(bad)
  v:drop(bad, "invalid")
  v:put("ip4.ttl", 63)
  v:put("ip4.tos", 16)
  work(v, complex, 62, 32)
end
