package gobuild

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// interval is how often progress is reported.
const interval = 5 * time.Second

// tailLines is the number of lines of the go command's output in an error.
const tailLines = 20

// reporter reads the standard error of the go command and writes one line of progress every few seconds.
type reporter struct {
	title string
	out   io.Writer
	begin time.Time
	quit  chan struct{}
	ended sync.WaitGroup

	mu       sync.Mutex
	doing    string
	total    int // maximum number of packages; some may be in Go's build cache
	compiled int
	partial  []byte
	last     []string
}

// newReporter starts a reporter for the program with the title, which writes to out until it is stopped.
func newReporter(title string, out io.Writer) *reporter {
	r := &reporter{title: title, out: out, begin: time.Now(), quit: make(chan struct{})}
	fmt.Fprintf(out, "%s: building it into the user's cache; this takes some minutes, once\n", title)
	r.ended.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				r.print()
			case <-r.quit:
				return
			}
		}
	})
	return r
}

// stop ends the reports. It may be called once.
func (r *reporter) stop() {
	close(r.quit)
	r.ended.Wait()
}

// phase sets the description of the current phase.
func (r *reporter) phase(doing string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doing = doing
}

// compiling means that from now on each line of output is a compiled package, of at most total.
func (r *reporter) compiling(total int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doing, r.total, r.last = "", total, nil
}

// done reports the end of the build.
func (r *reporter) done() {
	r.phase("built")
	r.print()
}

// print writes one line of progress.
func (r *reporter) print() {
	r.mu.Lock()
	defer r.mu.Unlock()
	doing := r.doing
	if doing == "" {
		doing = fmt.Sprintf("%d of at most %d packages compiled", r.compiled, r.total)
	}
	fmt.Fprintf(r.out, "%s: %4s  %s\n", r.title, time.Since(r.begin).Round(time.Second), doing)
}

// Write takes output of the go command.
func (r *reporter) Write(data []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partial = append(r.partial, data...)
	for {
		line, rest, found := bytes.Cut(r.partial, []byte("\n"))
		if !found {
			return len(data), nil
		}
		r.partial = rest
		r.line(string(line))
	}
}

// line takes one line of output: a package path, a download or an error.
func (r *reporter) line(text string) {
	if r.total > 0 && !strings.Contains(text, " ") {
		r.compiled++
		return
	}
	r.last = append(r.last, text)
	if len(r.last) > tailLines {
		r.last = r.last[1:]
	}
}

// tail returns the last lines that are not progress.
func (r *reporter) tail() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(append(r.last, string(r.partial)), "\n")
}
