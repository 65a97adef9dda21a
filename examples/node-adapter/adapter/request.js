// Parses the header block of a request: a netstring of names and values.
'use strict';

// Returns how many bytes the request has at least. Once its variables are complete, returns them,
// where the body starts, and where it ends. Each character of a variable is a byte.
function parse(bytes) {
  const colon = bytes.indexOf(':');
  if (colon < 0) return { needed: bytes.length + 1 };
  const comma = colon + 1 + Number(bytes.toString('latin1', 0, colon));
  if (bytes.length <= comma) return { needed: comma + 1 };
  const texts = bytes.toString('latin1', colon + 1, comma).split('\0');
  const env = {};
  for (let at = 0; at + 1 < texts.length; at += 2) env[texts[at]] = texts[at + 1];
  return { env, start: comma + 1, needed: comma + 1 + Number(env.CONTENT_LENGTH) };
}

module.exports = { parse };
