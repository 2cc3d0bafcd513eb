package engine_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestServerEndsWatchesInTime: the API server ends no watch before its time, counted from before the request. That tells one
// that was cut from one that ended.
func TestServerEndsWatchesInTime(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, seconds := testkit.Namespace(t), int64(1)
		for range 3 {
			begun := time.Now()
			events, err := testkit.Dynamic(t).Resource(widgets).Namespace(ns).Watch(t.Context(), metav1.ListOptions{TimeoutSeconds: &seconds})
			if err != nil {
				t.Fatal(err)
			}
			for range events.ResultChan() {
				continue
			}
			if took := time.Since(begun); took < time.Second {
				t.Errorf("it ended after %s", took)
			}
		}
	})
}
