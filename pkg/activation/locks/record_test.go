package locks

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// TestRecords: what is not the record of a lock is refused, and what is comes back as it was.
func TestRecords(t *testing.T) {
	now := time.Now()
	text := must.Get(encodeJSON(&leadership.Record{HolderIdentity: "eu_1", LeaseDurationSeconds: 15, AcquireTime: metav1.NewTime(now),
		RenewTime: metav1.NewTime(now), LeaderTransitions: 7})).In(t)
	r, err := decodeJSON([]byte(text))
	if err != nil || r.HolderIdentity != "eu_1" || r.LeaderTransitions != 7 || r.RenewTime.UnixMicro() != now.UnixMicro() {
		t.Errorf("%s is read as %+v, %v", text, r, err)
	}
	for reason, garbage := range map[string]string{
		"nothing": "", "text": "hello", "a number": "7", "a list": "[]", "JSON of another program": `{"leader":"x"}`,
		"no time": strings.Replace(text, `"renewed":"`, `"renewed":"x`, 1), "no token": strings.Replace(text, `"token":"7"`, `"token":""`, 1),
		"a token that nothing can follow": strings.Replace(text, `"token":"7"`, `"token":"9223372036854775807"`, 1),
		"a token below all":               strings.Replace(text, `"token":"7"`, `"token":"-7"`, 1),
		"a lease that overflows":          strings.Replace(text, `"leaseSeconds":15`, `"leaseSeconds":10000000000`, 1),
		"a lease of no time":              strings.Replace(text, `"leaseSeconds":15`, `"leaseSeconds":-15`, 1),
		"too long":                        `{"holder":"` + strings.Repeat("x", maxRecord) + `"}`, "cut off": text[:len(text)-2],
	} {
		if _, err := decodeJSON([]byte(garbage)); !errors.Is(err, ErrNotOurs) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}
