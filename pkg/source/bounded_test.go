package source

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// A message is refused by its header, before its body is read, however the bytes come.
func TestBoundedMessages(t *testing.T) {
	small, none := []byte("D\x00\x00\x00\x07abc"), []byte("Z\x00\x00\x00\x04")
	for _, c := range []struct {
		reason string
		text   []byte
		want   error
	}{
		{"nothing", nil, nil},
		{"messages", bytes.Join([][]byte{small, none, small}, nil), nil},
		{"a header that is cut off", small[:3], nil},
		{"one as large as allowed", append([]byte("D\x00\x40\x00\x00"), make([]byte, 100)...), nil},
		{"one larger", []byte("D\x00\x40\x00\x01"), errTooLarge},
		{"a length that would be negative", []byte("D\xff\xff\xff\xff"), errTooLarge},
		{"one after others", append(bytes.Join([][]byte{none, small}, nil), "D\x40\x00\x00\x00"...), errTooLarge},
		{"a length that does not count itself", append([]byte("D\x00\x00\x00\x00"), "D\x40\x00\x00\x00"...), errTooLarge},
	} {
		for _, r := range []io.Reader{bytes.NewReader(c.text), iotest.OneByteReader(bytes.NewReader(c.text))} {
			if _, err := io.Copy(io.Discard, &boundedMessages{r: r}); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", c.reason, err)
			}
		}
	}
}
