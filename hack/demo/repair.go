package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// showRepair changes, deletes and adds to downstreams directly.
func showRepair(ctx context.Context, s *environment) error {
	if err := s.repairImage(ctx); err != nil {
		return err
	}
	if err := s.repairDeleted(ctx); err != nil {
		return err
	}
	return s.leaveAlone(ctx)
}

func (s *environment) repairImage(ctx context.Context) error {
	before, err := s.in(deployments).Get(ctx, shop, metav1.GetOptions{})
	if err != nil {
		return err
	}
	want := imageOf(before)
	s.console.say("Somebody gives the Deployment another image, as kubectl edit would.")
	patch := `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"evil.example.com/miner:1"}]}}}}`
	after, err := s.in(deployments).Patch(ctx, shop, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: demoManager})
	if err != nil {
		return err
	}
	begin := time.Now()
	if imageOf(after) == want {
		return fmt.Errorf("the patch did not change the image")
	}
	if _, err := s.await(ctx, deployments, shop, hasImage(want)); err != nil {
		return err
	}
	s.console.done("the image is %s again, %s after the patch was answered", want, formatDuration(time.Since(begin)))
	return nil
}

func (s *environment) repairDeleted(ctx context.Context) error {
	const name = "bakery-imprint"
	before, err := s.in(configMaps).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	s.console.say("\nSomebody deletes ConfigMap %s.", name)
	if err := s.in(configMaps).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	begin := time.Now()
	_, err = s.await(ctx, configMaps, name, func(u *unstructured.Unstructured) string {
		if u == nil || u.GetUID() == before.GetUID() {
			return "it was not made again"
		}
		return ""
	})
	if err != nil {
		return err
	}
	s.console.done("it was made again within %s", formatDuration(time.Since(begin)))
	return nil
}

// leaveAlone adds a field that nobody manages. That corollary ignores it is certain after it has handled a later
// change: events come in order.
func (s *environment) leaveAlone(ctx context.Context) error {
	const name = "bakery-welcome"
	s.console.say("\nSomebody adds an annotation and a key of their own to ConfigMap %s, and changes its title.", name)
	for _, patch := range []string{
		`{"metadata":{"annotations":{"tools.example.com/note":"reviewed"}},"data":{"note":"mine"}}`, `{"data":{"title":"Mine now"}}`,
	} {
		if err := s.patch(ctx, configMaps, name, patch); err != nil {
			return err
		}
	}
	begin := time.Now()
	live, err := s.await(ctx, configMaps, name, titled("The bakery", name))
	if err != nil {
		return err
	}
	note, _, _ := unstructured.NestedString(live.Object, "data", "note")
	if live.GetAnnotations()["tools.example.com/note"] != "reviewed" || note != "mine" {
		return fmt.Errorf("what somebody added is gone: %v", live.Object)
	}
	s.console.done("the title is back after %s; what was added is left alone", formatDuration(time.Since(begin)))
	return nil
}
