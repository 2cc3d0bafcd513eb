package clusters

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// TestSVG: the picture is XML, and has each fault, hold and write once.
func TestSVG(t *testing.T) {
	begin := time.Now()
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	l := &Timeline{events: []Event{{at(0), "eu", EventActive, "1"}, {at(3), "", EventFault, "a <fault>"}, {at(4), "eu", EventStandby, ""},
		{at(8), "us", EventActive, "2"}, {at(9), "", EventHealed, "a <fault>"}}}
	text := l.SVG("two & one", []string{"eu", "us"}, []Write{{at(1), "eu", 1, ""}, {at(2), "eu", 1, ""}, {at(10), "us", 2, ""}})
	for part, times := range map[string]int{`class="active"`: 2, `class="write"`: 3, `class="fault"`: 1, "a &lt;fault&gt;": 1, "two &amp; one": 1, ">10 s<": 1} {
		if n := strings.Count(text, part); n != times {
			t.Errorf("%s is there %d times, not %d", part, n, times)
		}
	}
	for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
