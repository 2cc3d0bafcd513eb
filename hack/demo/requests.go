package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/corollary-dev/corollary/internal/controlplane"
)

// row is one line of the table of requests.
type row struct {
	operator, verb, resource, code string
	count                          int
}

var metric = regexp.MustCompile(`(?m)^corollary_requests_total\{code="(.*?)",operator="(.*?)",resource="(.*?)",verb="(.*?)"\} ([0-9.e+]+)$`)

// showRequests prints corollary's metrics of its requests for objects, and compares them with the API server's audit
// log.
func showRequests(ctx context.Context, s *environment) error {
	var rows []row
	err := poll(ctx, pollInterval, func() (bool, string, error) {
		text, err := fetch(ctx, s.child.metrics)
		if err != nil {
			return false, "", err
		}
		if rows, err = requestsIn(text); err != nil {
			return false, "", err
		}
		served, err := s.served()
		if err != nil {
			return false, "", err
		}
		own := total(rows)
		return own > 0 && own == served, fmt.Sprintf("corollary counts %d requests, the API server %d", own, served), nil
	})
	if err != nil {
		return err
	}
	s.console.say("Everything above, counted by corollary's metric corollary_requests_total (lists, watches and " +
		"discovery aside):")
	var b strings.Builder
	fmt.Fprintf(&b, "%-14s%-8s%-40s%-6s%s\n", "operator", "verb", "resource", "code", "requests")
	for _, r := range rows {
		fmt.Fprintf(&b, "%-14s%-8s%-40s%-6s%8d\n", r.operator, r.verb, r.resource, r.code, r.count)
	}
	s.console.block(b.String())
	s.console.done("%d requests; the API server's audit log has as many", total(rows))
	return nil
}

func total(rows []row) int {
	sum := 0
	for _, r := range rows {
		sum += r.count
	}
	return sum
}

// requestsIn parses the table from a metrics page.
func requestsIn(text string) ([]row, error) {
	var rows []row
	for _, m := range metric.FindAllStringSubmatch(text, -1) {
		count, err := strconv.ParseFloat(m[5], 64)
		if err != nil {
			return nil, fmt.Errorf("reading the metrics: %w", err)
		}
		rows = append(rows, row{code: m[1], operator: m[2], resource: m[3], verb: m[4], count: int(count)})
	}
	slices.SortFunc(rows, func(a, b row) int {
		return strings.Compare(a.operator+" "+a.resource+" "+a.verb+" "+a.code,
			b.operator+" "+b.resource+" "+b.verb+" "+b.code)
	})
	return rows, nil
}

// served counts the same requests in the audit log.
func (s *environment) served() (int, error) {
	events, err := s.plane.ReadAudit()
	if err != nil {
		return 0, err
	}
	count := 0
	for _, e := range events {
		if !strings.HasPrefix(e.UserAgent, "corollary/") || e.ObjectRef == nil {
			continue
		}
		if isInformers(e) || slices.Contains([]string{"events", "leases"}, e.ObjectRef.Resource) {
			continue
		}
		count++
	}
	return count, nil
}

// isInformers reports whether a request is from an informer. Other lists read the latest data: they have no resource
// version.
func isInformers(e controlplane.AuditEvent) bool {
	return e.Verb == "watch" || e.Verb == "list" && strings.Contains(e.RequestURI, "resourceVersion=")
}
