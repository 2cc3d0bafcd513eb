package webhook

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// A client that announces the largest review and sends none of it holds up nobody, and is cut off.
func TestAnnouncedReview(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&Handler{MaxTime: time.Second})
	t.Cleanup(server.Close)
	var idle []net.Conn
	for range 4 {
		conn := must.Get(net.Dial("tcp", server.Listener.Addr().String())).In(t)
		t.Cleanup(func() { _ = conn.Close() })
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n{", maxReview)
		idle = append(idle, conn)
	}
	for range 10 { // the idle ones may be read before or after
		response, err := http.Post(server.URL, "application/json", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusBadRequest { // it was read
			t.Errorf("answered %s", response.Status)
		}
	}
	for _, conn := range idle {
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusRequestTimeout || !response.Close {
			t.Errorf("the idle client is answered %s", response.Status)
		}
	}
}

// However many clients have sent nothing, or little, a review is read at once; each of them is held to one deadline for
// the whole.
func TestIdleClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		small := budget{semaphore.NewWeighted(4 * bodyStep), semaphore.NewWeighted(1)}
		done := make(chan struct{})
		for n := range 100 {
			go func() {
				r := reservation{budget: &small}
				defer r.release()
				_, _ = r.read(t.Context(), httptest.NewRecorder(), io.MultiReader(io.LimitReader(zeros{}, int64(n)), idle(done)), maxReview, time.Hour)
			}()
		}
		synctest.Wait()
		r, begun := reservation{budget: &small}, time.Now()
		if _, err := r.read(t.Context(), httptest.NewRecorder(), strings.NewReader("{}"), 2, time.Hour); err != nil || time.Since(begun) > 0 {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		r.release()

		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		if _, err := (&reservation{budget: &small}).read(ctx, w, slow{io.LimitReader(zeros{}, 3*firstStep)}, -1, 2*time.Second); err != nil {
			t.Error(err)
		}
		for _, at := range w.read {
			if left := at.Sub(begun); !at.IsZero() && left > 3*time.Second {
				t.Errorf("a step may take until %s after the first one began", left)
			}
		}
		close(done)
	})
}

// idle sends nothing until it is closed.
type idle chan struct{}

func (i idle) Read([]byte) (int, error) { <-i; return 0, io.EOF }

// deadlines notes those of reading.
type deadlines struct {
	*httptest.ResponseRecorder
	read []time.Time
}

// SetReadDeadline is for http.ResponseController.
func (d *deadlines) SetReadDeadline(at time.Time) error { d.read = append(d.read, at); return nil }

// A client that does not read the answer to its review does not keep the memory for it.
func TestUnreadAnswer(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	h := &Handler{MaxTime: 2 * time.Second, Converters: func(schema.GroupKind) *convert.Converter { return unchanged }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		close(ended)
	}))
	t.Cleanup(server.Close)
	conn := must.Get(net.Dial("tcp", server.Listener.Addr().String())).In(t)
	t.Cleanup(func() { _ = conn.Close() })
	body := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"example.com/v1","objects":[` +
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"` + strings.Repeat("x", 16<<20) + `"}}]}}`
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	<-ended
}

// unchanged converts nothing: its only version is the hub.
var unchanged = &convert.Converter{Kind: schema.GroupKind{Group: "example.com", Kind: "Thing"}, Hub: &kinds.Version{Name: "v1"}}

// Reviews that need more together than there is are read one after the other, whoever began first; nothing stays
// reserved.
func TestReviewsTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		small := budget{semaphore.NewWeighted(4 * bodyStep), semaphore.NewWeighted(1)}
		const reviews, size = 8, 3*bodyStep + 7
		read := make(chan int, reviews)
		for range reviews {
			go func() {
				r := reservation{budget: &small}
				defer r.release()
				text, err := r.read(t.Context(), httptest.NewRecorder(), slow{io.LimitReader(zeros{}, size)}, -1, time.Second)
				if err != nil {
					t.Error(err)
				}
				read <- len(text)
			}()
		}
		for range reviews {
			must.Same(t, size, <-read, "bytes are read")
		}
		synctest.Wait()
		if !small.shared.TryAcquire(4*bodyStep) || !small.alone.TryAcquire(1) {
			t.Error("something stays reserved")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := reservation{budget: &small}
		if _, err := r.read(ctx, httptest.NewRecorder(), zeros{}, 1, time.Second); err == nil || codeOf(err) != http.StatusServiceUnavailable {
			t.Errorf("with nothing left, the error is %v", err)
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// slow lets others begin between two steps.
type slow struct{ io.Reader }

func (s slow) Read(p []byte) (int, error) {
	<-time.After(time.Millisecond) // of a virtual clock
	return s.Reader.Read(p)
}
