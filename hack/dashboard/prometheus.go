package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// prometheus is a client of Prometheus' HTTP API.
type prometheus struct {
	address  string
	from, to time.Time
	rate     string
}

// points limits the values of a series.
const points = 240

// series is one series of a response: a value for each time, or a single one.
type series struct {
	labels map[string]string
	times  []time.Time
	values []float64
}

func (s series) last() float64 { return s.values[len(s.values)-1] }

// ask evaluates an expression of Grafana for the whole time range, or for its end.
func (p *prometheus) ask(ctx context.Context, t target) ([]series, error) {
	expr := strings.NewReplacer("$__rate_interval", p.rate, "$namespace", ".*", "$job", ".*",
		"$operator", ".*").Replace(t.Expr)
	form := url.Values{"query": {expr}}
	path := "/api/v1/query_range"
	if t.Instant {
		path = "/api/v1/query"
		form.Set("time", seconds(p.to))
	} else {
		form.Set("start", seconds(p.from))
		form.Set("end", seconds(p.to))
		form.Set("step", fmt.Sprintf("%.3f", p.to.Sub(p.from).Seconds()/points))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address+path+"?"+form.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Value  sample
				Values []sample
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("reading the answer to %s: %w", expr, err)
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("evaluating %s: %s", expr, answer.Error)
	}
	var list []series
	for _, r := range answer.Data.Result {
		s := series{labels: r.Metric}
		if t.Instant {
			r.Values = []sample{r.Value}
		}
		for _, v := range r.Values {
			s.times, s.values = append(s.times, v.at), append(s.values, v.value)
		}
		list = append(list, s)
	}
	return list, nil
}

func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// sample is a pair of a time and a number as text.
type sample struct {
	at    time.Time
	value float64
}

func (s *sample) UnmarshalJSON(text []byte) error {
	var pair [2]any
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}
	at, _ := pair[0].(float64)
	number, _ := pair[1].(string)
	s.at = time.UnixMilli(int64(at * 1000))
	var err error
	s.value, err = strconv.ParseFloat(number, 64)
	return err
}
