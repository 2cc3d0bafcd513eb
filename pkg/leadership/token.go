package leadership

import "strconv"

// Token is a fencing token: a number that only grows from one holder of a lock to the next, so that a system which
// remembers the greatest one can refuse a holder that is late. NoToken is that of a lock that has none.
type Token int64

// NoToken is the token of a process that does not hold the lock, and of a lock without tokens.
const NoToken Token = -1

// String returns its digits; it is empty for NoToken.
func (t Token) String() string {
	if t == NoToken {
		return ""
	}
	return strconv.FormatInt(int64(t), 10)
}

// Token is the token of the current hold.
func (t *Tenure) Token() Token {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.holds {
		return NoToken
	}
	return t.token
}

// hasBegun reports whether there is a current hold.
func (t *Tenure) hasBegun() bool { return t.Token() != NoToken }

// Preceded reports whether another process may have held the lock since this one was started, or held it last.
func (t *Tenure) Preceded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.preceded
}

// Begin notes what is known of a hold before its first renewal.
func (t *Tenure) Begin(token Token, preceded bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token, t.preceded = token, preceded
}
