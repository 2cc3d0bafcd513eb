package common

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a time.Duration written as Go writes it: 5s, 10h, 1h30m.
type Duration time.Duration

// String returns the duration as Go writes it.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes the duration as text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads text such as "5s". A text that is not a duration is an error.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("reading a duration: %w", err)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("reading a duration: %w", err)
	}
	*d = Duration(v)
	return nil
}
