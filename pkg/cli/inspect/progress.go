package inspect

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/corollary-dev/corollary/pkg/survey"
)

// progressLine shows how far a survey is: at a terminal on one line that is written over, else on lines of their own.
type progressLine struct {
	w            io.Writer
	on, terminal bool

	mu   sync.Mutex
	last string
}

func (l *progressLine) print(p survey.Progress) {
	if !l.on {
		return
	}
	text := fmt.Sprintf("operator %s: %d of %d upstreams", p.Operator, p.Done, p.Total)
	if len(p.Waiting) > 0 {
		text = fmt.Sprintf("operator %s: listing %s", p.Operator, strings.Join(p.Waiting, ", "))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if text == l.last {
		return
	}
	l.last = text
	if l.terminal {
		fmt.Fprint(l.w, "\r\x1b[K"+text)
		return
	}
	fmt.Fprintln(l.w, text)
}

// note writes something beside the results.
func (l *progressLine) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clearLocked()
	fmt.Fprintf(l.w, "note: "+format+"\n", args...)
}

// noteSource says that rows cannot be read any more, or can be again.
func (l *progressLine) noteSource(operator string, err error) {
	if err == nil {
		l.note("operator %s: the rows are read again", operator)
		return
	}
	l.note("operator %s: the rows of the last result stay, will retry: %v", operator, err)
}

// clear takes the line away before something else is written.
func (l *progressLine) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clearLocked()
}

func (l *progressLine) clearLocked() {
	if l.terminal && l.last != "" {
		fmt.Fprint(l.w, "\r\x1b[K")
		l.last = ""
	}
}
