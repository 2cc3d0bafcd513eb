package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// showChain creates a Website and waits until everything that follows from it exists.
func showChain(ctx context.Context, s *environment) error {
	website, text, err := fromFile(chain + "/cr.yaml")
	if err != nil {
		return err
	}
	s.console.say("Two configs form a chain: a Website makes Pages, a Page makes a ConfigMap. Somebody creates")
	s.console.block(text)
	if err := s.create(ctx, websites, website); err != nil {
		return err
	}
	begin := time.Now() // from the API server's response: its first create takes seconds
	live, err := s.await(ctx, websites, website.GetName(), ready)
	if err != nil {
		return err
	}
	s.console.done("the Website is Ready after %s, and with it what follows from it:", formatDuration(time.Since(begin)))
	tree, err := s.tree(ctx, live)
	if err != nil {
		return err
	}
	s.console.block(tree)
	s.console.say("Its status says what was done:")
	status, err := yaml.Marshal(map[string]any{"status": live.Object["status"]})
	if err != nil {
		return err
	}
	s.console.block(string(status))
	content, err := s.in(configMaps).Get(ctx, "bakery-welcome", metav1.GetOptions{})
	if err != nil {
		return err
	}
	want, _, _ := unstructured.NestedString(website.Object, "spec", "welcome")
	page, _, _ := unstructured.NestedString(content.Object, "data", "index.md")
	if !strings.Contains(page, want) {
		return fmt.Errorf("ConfigMap bakery-welcome holds %q, which lacks the text %q", page, want)
	}
	s.console.done("the text of two lines has arrived in ConfigMap bakery-welcome:")
	s.console.block(page)
	return nil
}

// tree draws what a Website owns, each with its Ready condition. It fails if the owner references differ.
func (s *environment) tree(ctx context.Context, website *unstructured.Unstructured) (string, error) {
	var b strings.Builder
	line := func(depth int, u *unstructured.Unstructured) {
		state := ""
		if c := condition(u, "Ready"); c != nil {
			state = fmt.Sprintf("Ready=%v", c["status"])
		}
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%-42s%s",
			strings.Repeat("   ", depth)+u.GetKind()+" "+u.GetName(), state), " "))
	}
	line(0, website)
	children, err := s.in(pages).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	leaves, err := s.in(configMaps).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	count := 0
	for i := range children.Items {
		page := &children.Items[i]
		if !metav1.IsControlledBy(page, website) {
			continue
		}
		line(1, page)
		for j := range leaves.Items {
			if leaf := &leaves.Items[j]; metav1.IsControlledBy(leaf, page) {
				count++
				line(2, leaf)
			}
		}
	}
	if count != 2 {
		return "", fmt.Errorf("%d ConfigMaps follow from the Website, want 2:\n%s", count, b.String())
	}
	return b.String(), nil
}
