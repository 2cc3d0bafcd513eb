package fence

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// maxNote is the maximum length of an event's note, in bytes.
const maxNote = 1024

// Recorder cuts the notes of events to the length that the API server accepts. Every event of the process goes through
// one.
type Recorder struct{ events.EventRecorder }

// Eventf records an event.
func (r Recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r.EventRecorder.Eventf(regarding, related, eventType, reason, action, "%s", cutNote(fmt.Sprintf(note, args...)))
}

// cutNote cuts a text between two characters.
func cutNote(note string) string {
	const more = "…"
	note = strings.ToValidUTF8(note, "\uFFFD")
	if len(note) <= maxNote {
		return note
	}
	cut := maxNote - len(more)
	for !utf8.RuneStart(note[cut]) {
		cut--
	}
	return note[:cut] + more
}
