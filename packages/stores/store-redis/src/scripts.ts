import { createHash } from "node:crypto";
import { leaseExpired } from "@countersign/idempotency/store";

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

// A record is a hash: state (running, held, done; free: released, kept for its fence), token, fence, fingerprint, reason, until (end of the
// lease or of the memory, in milliseconds since 1970), and an operator's decision (decision…, reopened…), which a claim keeps unless the
// record is over. Half a record is an error: a run without its lease would look expired, and be given away. ARGV[1] is the clock of a
// test, or empty. An empty text was not given. Numbers are written by %.0f, which no locale and no exponent changes.
//
// Only done and free expire: a run or held key that went by itself would let a payment run twice. `until` alone says what is over; Redis
// removes it a little later, by the time at which the script began, and beside the clock of a test by the real time.
//
// A full server refuses a script whose first write may need memory, and no write after one that needs none. So a step that settles a
// key begins with PERSIST, and a payment that was made can still be marked as done.
const prelude = `
local decisionFields = {'decision', 'decisionFence', 'decisionAt', 'decisionBy', 'decisionNote', 'decisionReason',
  'reopenedAt', 'reopenedBy', 'reopenedNote'}
local time = redis.call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
local laterMs = 1000
if ARGV[1] ~= '' then micros, laterMs = tonumber(ARGV[1]) * 1000, 3600000 end
local now = math.floor(micros / 1000)
local function int(n) return string.format('%.0f', n) end
local function damaged() return redis.error_reply('ERR the record of a key is damaged') end
local record = redis.call('HMGET', KEYS[1], 'state', 'token', 'fence', 'fingerprint', 'reason', 'until')
local state, token, fence, fingerprint, reason = record[1], record[2], record[3], record[4], record[5]
local untilMs = tonumber(record[6] or '0')
local present = 0
for field = 1, 6 do if record[field] then present = present + 1 end end
if present > 0 and (present < 6 or not untilMs or not string.match(fence, '^%d+$')
  or not (state == 'running' or state == 'held' or state == 'done' or state == 'free')) then
  return damaged()
end
local function write(...)
  if state then redis.call('PERSIST', KEYS[1]) end
  redis.call('HSET', KEYS[1], ...)
end
local function decided()
  local kept = redis.call('HMGET', KEYS[1], unpack(decisionFields))
  if not kept[1] then return {} end
  for field = 1, #decisionFields do if not kept[field] then return nil end end
  return kept
end
local function remember(newState, durationMs, newToken)
  write('state', newState, 'token', newToken or token, 'reason', '', 'until', int(now + tonumber(durationMs)))
  redis.call('PEXPIRE', KEYS[1], int(tonumber(durationMs) + laterMs))
end
`;

/**
 * ARGV: clock, token, fingerprint, lease, recovery. A fence is the time in microseconds, or one more than the last: it grows even when the
 * last record is gone or the clock was set back. A lease that is then too long is cut: a dead owner would keep the key.
 */
export const claimScript: RedisScript = script(`${prelude}
if state == 'done' and untilMs > now then return {'done', fingerprint} end
if state == 'held' then return {'held', fingerprint, reason} end
if state == 'running' then
  if token == ARGV[2] then
    write('until', int(now + tonumber(ARGV[4])))
    return {'acquired', fence}
  end
  local oneLease = now + tonumber(ARGV[4])
  if untilMs > oneLease then
    untilMs = oneLease
    write('until', int(untilMs))
  end
  if untilMs > now then return {'in-flight', fingerprint, int(untilMs - now)} end
  if ARGV[5] ~= 'rerun' then
    write('state', 'held', 'reason', '${leaseExpired}')
    return {'held', fingerprint, '${leaseExpired}'}
  end
end
if (state == 'done' or state == 'free') and untilMs <= now then redis.call('HDEL', KEYS[1], unpack(decisionFields)) end
local nextFence = int(math.max(tonumber(fence or '0') + 1, micros))
write('state', 'running', 'token', ARGV[2], 'fence', nextFence, 'fingerprint', ARGV[3], 'reason', '',
  'until', int(now + tonumber(ARGV[4])))
return {'acquired', nextFence}
`);

/** ARGV: clock; `free` after it reads a free key alone. */
export const readScript: RedisScript = script(`${prelude}
if not state or (state == 'free') ~= (ARGV[2] == 'free') then return {'absent'} end
if (state == 'done' or state == 'free') and untilMs <= now then return {'absent'} end
local answer, kept = {state, token, fence, fingerprint, reason, int(untilMs - now)}, decided()
if not kept then return damaged() end
for field = 1, #kept do answer[#answer + 1] = kept[field] end
return answer
`);

/** ARGV: clock, token, lease. */
export const heartbeatScript: RedisScript = script(`${prelude}
if state ~= 'running' or token ~= ARGV[2] then return 'lost' end
write('until', int(now + tonumber(ARGV[3])))
return 'ok'
`);

/** ARGV: clock, token, retention. */
export const completeScript: RedisScript = script(`${prelude}
if token ~= ARGV[2] then return 'lost' end
if state == 'done' and untilMs > now then return 'ok' end
if state ~= 'running' and state ~= 'held' then return 'lost' end
remember('done', ARGV[3])
return 'ok'
`);

/** ARGV: clock, token, memory of the fence, memory of a decision: a retry that fails must not remove an operator's decision. */
export const releaseScript: RedisScript = script(`${prelude}
if state ~= 'running' or token ~= ARGV[2] then return 'lost' end
remember('free', ARGV[redis.call('HMGET', KEYS[1], 'decision')[1] and 4 or 3])
return 'ok'
`);

/** ARGV: clock, token, reason. */
export const holdScript: RedisScript = script(`${prelude}
if state ~= 'running' or token ~= ARGV[2] then return 'lost' end
write('state', 'held', 'reason', ARGV[3])
return 'ok'
`);

/** ARGV: clock, fence, new token, done or released, memory, by, note. The token takes the key from its owner, and marks a repetition. */
export const resolveScript: RedisScript = script(`${prelude}
if fence ~= ARGV[2] then return 'not-held' end
if token == ARGV[3] then return 'ok' end
if state ~= 'held' and not (state == 'running' and untilMs <= now) then return 'not-held' end
remember(ARGV[4] == 'done' and 'done' or 'free', ARGV[5], ARGV[3])
redis.call('HSET', KEYS[1], 'decision', ARGV[4], 'decisionFence', fence, 'decisionAt', int(now), 'decisionBy', ARGV[6],
  'decisionNote', ARGV[7], 'decisionReason', state == 'held' and reason or '${leaseExpired}',
  'reopenedAt', '', 'reopenedBy', '', 'reopenedNote', '')
return 'ok'
`);

/** ARGV: clock, fence decided about, new token, by, note. Raises the fence: with the old one a repeated decision would decide anew. */
export const reopenScript: RedisScript = script(`${prelude}
if state == 'held' and token == ARGV[3] then return 'ok' end
if fence ~= ARGV[2] or (state ~= 'done' and state ~= 'free') or untilMs <= now then return 'not-decided' end
local kept = decided()
if not kept then return damaged() end
if kept[2] ~= fence then return 'not-decided' end
write('state', 'held', 'token', ARGV[3], 'fence', int(tonumber(fence) + 1), 'reason', kept[6],
  'reopenedAt', int(now), 'reopenedBy', ARGV[4], 'reopenedNote', ARGV[5])
return 'ok'
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
