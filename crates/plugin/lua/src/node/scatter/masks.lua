-- Bit masks: packets stay where they are, and each module visits those whose bit is set.
function vector(v)
  local complex = v:between("udp.sport", 0, 999)
  work(v, v:minus(v:all(), complex), 63, 16)
  work(v, complex, 62, 32)
end
