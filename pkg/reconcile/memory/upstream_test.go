package memory

import (
	"testing"
	"time"

	"github.com/corollary-dev/corollary/pkg/canonical"
)

func TestTooSlowIsTriedAgain(t *testing.T) {
	now := time.Now()
	u := &Upstream{version: "1", digest: canonical.Sum{1}}
	u.Notes.Edit().RenderAgainAt = now
	if u.RenderSlowAgain(now.Add(-time.Second)); u.version != "1" {
		t.Error("it is rendered again at once")
	}
	if u.RenderSlowAgain(now); u.version != "" || u.digest != (canonical.Sum{}) || !u.Notes.Get().RenderAgainAt.IsZero() {
		t.Error("it is not rendered again")
	}
}
