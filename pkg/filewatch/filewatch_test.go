package filewatch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// watching runs a watcher that reads one file at each call; its interval is too long to matter.
type watching struct {
	t     *testing.T
	dir   string
	read  atomic.Value // the file's content at the last call
	looks atomic.Int32
}

func watch(t *testing.T, dir, file string, interval time.Duration) *watching {
	w := &watching{t: t, dir: dir}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		Run(ctx, Options{Interval: interval, Log: logr.Discard()}, func() []string {
			text, err := os.ReadFile(file)
			if err != nil {
				text = []byte(err.Error())
			}
			w.read.Store(string(text))
			w.looks.Add(1)
			return []string{file}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return w
}

func (w *watching) eventually(want string) {
	w.t.Helper()
	w.until("it never read "+want, func() bool { return w.read.Load() == want })
}

func (w *watching) until(otherwise string, holds func() bool) {
	w.t.Helper()
	testkit.Eventually(w.t, testkit.Patience, func() (bool, string) {
		return holds(), fmt.Sprintf("%s; the last is %v", otherwise, w.read.Load())
	})
}

func (w *watching) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	must.Do(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(w.t, os.WriteFile(path, []byte(text), 0o600))
}

func (w *watching) rename(from, to string) {
	w.t.Helper()
	must.Do(w.t, os.Rename(filepath.Join(w.dir, from), filepath.Join(w.dir, to)))
}

func (w *watching) link(target, name string) {
	w.t.Helper()
	must.Do(w.t, os.Symlink(target, filepath.Join(w.dir, name)))
}

// TestRunSees: changes are noticed without the interval.
func TestRunSees(t *testing.T) {
	for _, test := range []struct {
		reason string
		before func(w *watching)
		change func(w *watching)
	}{
		{"a file that is written", func(w *watching) { w.write("app.yaml", "one") }, func(w *watching) { w.write("app.yaml", "two") }},
		{"an editor's way: a new file takes the name", func(w *watching) { w.write("app.yaml", "one") }, func(w *watching) {
			w.write(".app.yaml.swp", "two")
			w.rename("app.yaml", "app.yaml~")
			w.rename(".app.yaml.swp", "app.yaml")
		}},
		{"a mounted ConfigMap: one link is turned, the file's stays as it is", func(w *watching) {
			w.write("..2026_01/app.yaml", "one")
			w.link("..2026_01", "..data")
			w.link("..data/app.yaml", "app.yaml")
		}, func(w *watching) {
			w.write("..2026_02/app.yaml", "two")
			w.link("..2026_02", "..data_tmp")
			w.rename("..data_tmp", "..data")
			must.Do(w.t, os.RemoveAll(filepath.Join(w.dir, "..2026_01")))
		}},
		{"a link into another folder", func(w *watching) {
			w.write("elsewhere/real.yaml", "one")
			w.link("elsewhere/real.yaml", "app.yaml")
		}, func(w *watching) { w.write("elsewhere/real.yaml", "two") }},
		{"a file that was not there", func(*watching) {}, func(w *watching) { w.write("app.yaml", "two") }},
	} {
		t.Run(test.reason, func(t *testing.T) {
			dir := t.TempDir()
			test.before(&watching{t: t, dir: dir})
			w := watch(t, dir, filepath.Join(dir, "app.yaml"), time.Hour)
			w.until("it never looked twice", func() bool { return w.looks.Load() >= 2 }) // from now on the folders are watched
			test.change(w)
			w.eventually("two")
		})
	}
}

// TestRunPolls: there are no notifications, because the directory does not exist yet.
func TestRunPolls(t *testing.T) {
	dir := t.TempDir()
	w := watch(t, dir, filepath.Join(dir, "later", "app.yaml"), 20*time.Millisecond)
	w.write("later/app.yaml", "two")
	w.eventually("two")
}

// TestRunWaitsForCalm: many writes are reported as one change, or a few.
func TestRunWaitsForCalm(t *testing.T) {
	dir := t.TempDir()
	w := watch(t, dir, filepath.Join(dir, "app.yaml"), time.Hour)
	w.until("it never looked twice", func() bool { return w.looks.Load() >= 2 })
	before, begin := w.looks.Load(), time.Now()
	for range 500 {
		w.write("app.yaml", "one")
	}
	w.write("app.yaml", "two")
	w.eventually("two")
	most := 5 + int32(time.Since(begin)/quietPeriod) // if writing takes long, there may be calm periods in between
	if n := w.looks.Load() - before; n > most {
		t.Errorf("it looked %d times, more than %d", n, most)
	}
}

func TestFolders(t *testing.T) {
	dir := t.TempDir()
	w := &watching{t: t, dir: dir}
	w.write("real/app.yaml", "")
	w.link("real/app.yaml", "app.yaml")
	have := folders([]string{filepath.Join(dir, "app.yaml"), filepath.Join(dir, "real"), filepath.Join(dir, "gone.yaml")})
	want := []string{dir, filepath.Join(dir, "real")}
	if !slices.Equal(have, want) {
		t.Errorf("got %v, want %v", have, want)
	}
}
