-- Asks for the paths of a file, one after the other, and says in one line of JSON how that went.
local paths, at = {}, 0

function init(arguments)
  for line in io.lines(arguments[1]) do paths[#paths + 1] = line end
end

function request()
  at = at % #paths + 1
  return wrk.format("GET", paths[at])
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "seconds": %f, "p50": %f, "p99": %f, "errors": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e6, latency:percentile(99) / 1e6,
    errors.connect + errors.read + errors.write + errors.timeout + errors.status))
end
