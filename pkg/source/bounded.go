package source

import (
	"encoding/binary"
	"errors"
	"io"
)

// maxValueBytes bounds what is read of a database before it is known to be too large: escapes and spaces, which a row
// has there, count.
const maxValueBytes = 4 * maxRowBytes

var errTooLarge = errors.New("the database sends a row of more than 4 MiB: select less")

// boundedMessages reads what a PostgreSQL server sends, and fails before a message that is too large to be kept in
// memory.
type boundedMessages struct {
	r io.Reader
	// header is what was read of a header: a byte, and the length of the message without that byte.
	header []byte
	// body is how much is left of the message after its header.
	body int
}

const messageHeader = 5

// Read implements io.Reader.
func (m *boundedMessages) Read(into []byte) (int, error) {
	n, err := m.r.Read(into)
	for rest := into[:n]; len(rest) > 0; {
		if m.body > 0 {
			skip := min(m.body, len(rest))
			m.body -= skip
			rest = rest[skip:]
			continue
		}
		take := min(messageHeader-len(m.header), len(rest))
		m.header = append(m.header, rest[:take]...)
		rest = rest[take:]
		if len(m.header) < messageHeader {
			continue
		}
		length := binary.BigEndian.Uint32(m.header[1:])
		if length > maxValueBytes {
			return 0, errTooLarge
		}
		m.header, m.body = m.header[:0], max(0, int(length)-4)
	}
	return n, err
}
