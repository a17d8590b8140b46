import { createHash } from "node:crypto";

/** One atomic step on at most one key. Replies with its last argument, by which a caller knows its own reply, and the answer. */
export interface RedisScript {
  readonly text: string;
  readonly sha1: string;
}

function script(step: string): RedisScript {
  const text = `
local function step()
${step}
end
local answer = step()
if type(answer) == 'table' and answer.err then return answer end
return {ARGV[#ARGV], answer}
`;
  return { text, sha1: createHash("sha1").update(text).digest("hex") };
}

// The row of a key is a hash: state, token, fence, fingerprint, reason, recovery, until (end of the lease or of the retention, in milliseconds since
// 1970), version, and an operator's decision in JSON, where there is one. Half a row is an error: a running key without its lease would look
// expired, and be given away. No script knows which change follows which row: that is in life.ts. ARGV[1] is the clock of a test, or empty.
// Numbers are written by %.0f, which no locale and no exponent changes.
//
// `until` decides when a row is over; Redis removes it a little later, by the time at which the script began, and beside the clock of a
// test by the real time.
const prelude = `
local time = redis.call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
local laterMs = 1000
if ARGV[1] ~= '' then micros, laterMs = tonumber(ARGV[1]) * 1000, 3600000 end
local now = math.floor(micros / 1000)
local function int(n) return string.format('%.0f', n) end
local row = redis.call('HMGET', KEYS[1], 'state', 'token', 'fence', 'fingerprint', 'reason', 'until', 'version', 'recovery', 'decision')
local state, token, fence, version = row[1], row[2], row[3], row[7]
local untilMs = tonumber(row[6] or '0')
local present = 0
for field = 1, 8 do if row[field] then present = present + 1 end end
local known = state == 'running' or state == 'held' or state == 'done' or state == 'free'
if present > 0 and (present < 8 or not known or not untilMs
  or not string.match(fence, '^%d+$') or not string.match(version, '^%d+$')) then
  return redis.error_reply('ERR the record of a key is damaged')
end
`;

const rowAsSeen =
  "{state, token, fence, row[4], row[5], int(untilMs - now), version, int(now), row[8], row[9] or ''}";

/** ARGV: clock, state, token, fingerprint, reason, duration, recovery. Replies with the fence, or with the row that is there. */
export const addScript: RedisScript = script(`${prelude}
if state then return ${rowAsSeen} end
redis.call('HSET', KEYS[1], 'state', ARGV[2], 'token', ARGV[3], 'fence', int(micros), 'fingerprint', ARGV[4], 'reason', ARGV[5],
  'until', int(now + tonumber(ARGV[6])), 'version', '1', 'recovery', ARGV[7])
return int(micros)
`);

/** ARGV: clock. */
export const lookScript: RedisScript = script(`${prelude}
if not state then return {'absent'} end
return ${rowAsSeen}
`);

/**
 * ARGV: clock; the token that was seen; the version that was seen, or empty; the states that were expected, each between commas, or empty;
 * state, reason, duration; new token, fingerprint and recovery, empty where they stay; 1 if the fence is raised; 1 if Redis may remove the row
 * when it is over; `stays`, `none` or `set` for the decision, and the decision. Replies with the fence.
 *
 * A full server refuses a script whose first write may need memory, and no write after one that needs none. So the step begins with
 * PERSIST, and a payment that was made can still be marked as done.
 */
export const writeScript: RedisScript = script(`${prelude}
if not state or token ~= ARGV[2] then return 'changed' end
if ARGV[3] ~= '' and version ~= ARGV[3] then return 'changed' end
if ARGV[3] == '' and not string.find(ARGV[4], ',' .. state .. ',', 1, true) then return 'changed' end
local function given(text, kept) if text == '' then return kept end return text end
local nextFence = fence
if ARGV[11] == '1' then nextFence = int(math.max(tonumber(fence) + 1, micros)) end
redis.call('PERSIST', KEYS[1])
redis.call('HSET', KEYS[1], 'state', ARGV[5], 'token', given(ARGV[8], token), 'fence', nextFence, 'fingerprint', given(ARGV[9], row[4]),
  'reason', ARGV[6], 'until', int(now + tonumber(ARGV[7])), 'version', int(tonumber(version) + 1),
  'recovery', given(ARGV[10], row[8]))
if ARGV[13] == 'none' then redis.call('HDEL', KEYS[1], 'decision') end
if ARGV[13] == 'set' then redis.call('HSET', KEYS[1], 'decision', ARGV[14]) end
if ARGV[12] == '1' then redis.call('PEXPIRE', KEYS[1], int(tonumber(ARGV[7]) + laterMs)) end
return nextFence
`);

/** ARGV: clock, token, retention. A nonce lives through its last millisecond, so that it outlives the signature by the coarsest clock. */
export const nonceScript: RedisScript = script(`
local time = redis.call('TIME')
local now, laterMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000), 1000
if ARGV[1] ~= '' then now, laterMs = tonumber(ARGV[1]), 3600000 end
local untilMs = now + tonumber(ARGV[3])
local kept = redis.call('GET', KEYS[1])
if kept then
  local keptUntil, owner = string.match(kept, '^(%d+):(.*)$')
  if not keptUntil then return redis.error_reply('ERR the record of a nonce is damaged') end
  if owner == ARGV[2] then untilMs = math.max(untilMs, tonumber(keptUntil))
  elseif tonumber(keptUntil) >= now then return 'seen' end
  redis.call('PERSIST', KEYS[1])
end
redis.call('SET', KEYS[1], string.format('%.0f', untilMs) .. ':' .. ARGV[2], 'PX', string.format('%.0f', untilMs - now + laterMs))
return 'fresh'
`);

/** ARGV: clock, retention, the answer in base64. The record is its end and the answer. */
export const keepAnswerScript: RedisScript = script(`
local time = redis.call('TIME')
local now, laterMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000), 1000
if ARGV[1] ~= '' then now, laterMs = tonumber(ARGV[1]), 3600000 end
local retainMs = tonumber(ARGV[2])
redis.call('SET', KEYS[1], string.format('%.0f', now + retainMs) .. ':' .. ARGV[3], 'PX', string.format('%.0f', retainMs + laterMs))
return 'kept'
`);

/** ARGV: clock. The answer in base64 after a colon; nothing where there is none, or where it is over. */
export const findAnswerScript: RedisScript = script(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if ARGV[1] ~= '' then now = tonumber(ARGV[1]) end
local kept = redis.call('GET', KEYS[1])
if not kept then return 'none' end
local untilMs, answer = string.match(kept, '^(%d+)(:.*)$')
if not untilMs then return redis.error_reply('ERR the record of an answer is damaged') end
if tonumber(untilMs) <= now then return 'none' end
return answer
`);

/** The name of the key as the server sees it: some clients put a prefix of their own before it. */
export const nameScript: RedisScript = script("return KEYS[1]");

/** ARGV: cursor, pattern, count. Adds the run_id, empty without INFO: each process hashes keys by its own secret, so cursors differ. */
export const pageScript: RedisScript = script(`
local page = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local info = redis.pcall('INFO', 'server')
local runId = type(info) == 'string' and string.match(info, '\\nrun_id:(%x+)') or ''
return {page[1], page[2], runId}
`);
