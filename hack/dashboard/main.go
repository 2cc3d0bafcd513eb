// Command dashboard draws the chart's Grafana dashboard for the documents, without Grafana: the layout, titles, units
// and expressions are those of files/dashboard.json, the data is from a running Prometheus.
//
// To draw it again: make cluster; run two busy processes with --leader-elect and --metrics-bind-address; let a
// Prometheus scrape both, with the labels that a ServiceMonitor sets (job, namespace, pod); then
//
//	go run ./hack/dashboard -prometheus http://127.0.0.1:9090 -caption "what was run" > docs/pictures/dashboard.svg
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "dashboard: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	file := flag.String("dashboard", "charts/corollary/files/dashboard.json", "the dashboard")
	server := flag.String("prometheus", "http://127.0.0.1:9090", "address of the Prometheus to ask")
	end := flag.String("to", "", "end of the time that is shown, as RFC 3339; now where empty")
	span := flag.Duration("span", 30*time.Minute, "how long a time is shown")
	rate := flag.String("rate-interval", "1m", "what stands for $__rate_interval")
	caption := flag.String("caption", "", "what stands below")
	flag.Parse()
	to := time.Now()
	if *end != "" {
		var err error
		if to, err = time.Parse(time.RFC3339, *end); err != nil {
			return fmt.Errorf("reading -to: %w", err)
		}
	}
	text, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return fmt.Errorf("reading %s: %w", *file, err)
	}
	p := &prometheus{address: *server, from: to.Add(-*span), to: to, rate: *rate}
	c := newCanvas(d, p.from, p.to, *caption)
	for i := range d.Panels {
		if err := c.panel(ctx, &d.Panels[i], p); err != nil {
			return fmt.Errorf("drawing %q: %w", d.Panels[i].Title, err)
		}
	}
	_, err = os.Stdout.WriteString(c.finish())
	return err
}

// dashboard has the used parts of Grafana's format.
type dashboard struct {
	Title  string
	Panels []panel
}

type panel struct {
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Targets     []target
	FieldConfig struct {
		Defaults struct {
			Unit       string
			Decimals   *int
			Min        *float64
			Thresholds struct{ Steps []step }
			Mappings   []struct {
				Options map[string]struct{ Text, Color string }
			}
			Custom struct {
				Stacking, ThresholdsStyle struct{ Mode string }
				AxisSoftMax               float64
			}
		}
		Overrides []struct {
			Matcher    struct{ Options string }
			Properties []struct{ Value struct{ FixedColor string } }
		}
	}
	Options         struct{ TextMode string }
	Transformations []struct {
		Options struct {
			IndexByName  map[string]int
			RenameByName map[string]string
		}
	}
}

type target struct {
	Expr, LegendFormat string
	Instant            bool
}

// color returns the color of the i-th series of a panel, by its name.
func (p *panel) color(i int, name string) string {
	for _, o := range p.FieldConfig.Overrides {
		if o.Matcher.Options == name {
			return hex(o.Properties[0].Value.FixedColor)
		}
	}
	return palette[i%len(palette)]
}

// step is the color from a value upward; the first step has no value.
type step struct {
	Color string
	Value *float64
}

// name returns the name of a series in the legend.
func (t target) name(labels map[string]string) string {
	name := t.LegendFormat
	for key, value := range labels {
		name = strings.ReplaceAll(name, "{{"+key+"}}", value)
	}
	return strings.Join(strings.Fields(name), " ")
}
