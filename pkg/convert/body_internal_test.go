package convert

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
)

// A client that announces the largest review and sends none of it holds up nobody, and is cut off.
func TestAnnouncedReview(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&Handler{MaxTime: time.Second})
	t.Cleanup(server.Close)
	var idle []net.Conn
	for range 4 {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n{", MaxReview)
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

// Reviews that need more together than there is are read one after the other, whoever began first; nothing stays reserved.
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
			if n := <-read; n != size {
				t.Errorf("%d bytes are read", n)
			}
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
