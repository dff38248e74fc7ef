-- Click's way: the packets of each class are put into an array of their own.
function vector(v)
  local complex, fast = v:split(v:between("udp.sport", 0, 999))
  work(v, fast, 63, 16)
  work(v, complex, 62, 32)
end
