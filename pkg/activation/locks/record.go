package locks

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/leadership"
)

// stored is the form of a record in stores that have none of their own. People read it, too.
type stored struct {
	Holder       string `json:"holder"`
	LeaseSeconds int    `json:"leaseSeconds"`
	Acquired     string `json:"acquired"`
	Renewed      string `json:"renewed"`
	Token        string `json:"token"`
}

// lastToken is the greatest token that decode reads.
const lastToken = leadership.Token(math.MaxInt)

// encode writes a record. Times keep their microseconds, by which renewals differ.
func encode(r *leadership.Record) stored {
	text := func(t metav1.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00") }
	return stored{Holder: r.HolderIdentity, LeaseSeconds: r.LeaseDurationSeconds,
		Acquired: text(r.AcquireTime), Renewed: text(r.RenewTime),
		Token: strconv.Itoa(r.LeaderTransitions)}
}

// decode reads what encode wrote, and refuses anything else: what is not ours must not be overwritten.
func (s stored) decode() (*leadership.Record, error) {
	acquired, err := time.Parse(time.RFC3339Nano, s.Acquired)
	if err != nil {
		return nil, notOurs(err)
	}
	renewed, err := time.Parse(time.RFC3339Nano, s.Renewed)
	if err != nil {
		return nil, notOurs(err)
	}
	token, err := strconv.Atoi(s.Token)
	if err != nil {
		return nil, notOurs(err)
	}
	if s.LeaseSeconds < 0 || s.LeaseSeconds > math.MaxInt32 || token < 0 || token > maxToken {
		return nil, notOurs(fmt.Errorf("leaseSeconds is %d, token is %d", s.LeaseSeconds, token))
	}
	return &leadership.Record{HolderIdentity: s.Holder, LeaseDurationSeconds: s.LeaseSeconds,
		AcquireTime: metav1.NewTime(acquired),
		RenewTime:   metav1.NewTime(renewed), LeaderTransitions: token}, nil
}

// ErrNotOurs says that something else is where the record of a lock would be.
var ErrNotOurs = errors.New("what is stored there is not the record of a lock: use another place, or remove it")

func notOurs(err error) error { return fmt.Errorf("%w: %w", ErrNotOurs, err) }

func encodeJSON(r *leadership.Record) (string, error) {
	text, err := json.Marshal(encode(r))
	if err != nil {
		return "", fmt.Errorf("writing the record: %w", err)
	}
	return string(text), nil
}

// maxToken leaves room for greater ones.
const maxToken = math.MaxInt64 / 2

// maxRecord bounds what is read of a record: others may write to its place.
const maxRecord = 4096

func decodeJSON(data []byte) (*leadership.Record, error) {
	if len(data) > maxRecord {
		return nil, notOurs(fmt.Errorf("it has %d bytes", len(data)))
	}
	var s stored
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, notOurs(err)
	}
	return s.decode()
}
