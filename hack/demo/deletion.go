package main

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// allKinds are kinds of which objects could be left.
var allKinds = []schema.GroupVersionResource{websites, pages, apps, configMaps, deployments, replicaSets, pods}

// showDeletion deletes every custom resource and waits until nothing that followed from them is left.
func showDeletion(ctx context.Context, s *environment) error {
	s.console.say("Somebody deletes the Website and the Appoperators.")
	before, err := s.objects(ctx, "")
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := s.in(websites).Delete(ctx, "bakery", metav1.DeleteOptions{}); err != nil {
		return err
	}
	for _, name := range []string{shop, "too-many", "intruder"} {
		if err := s.in(apps).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	err = poll(ctx, pollInterval, func() (bool, string, error) {
		if err := s.simulateGarbageCollector(ctx); err != nil {
			return false, "", err
		}
		left, err := s.objects(ctx, "")
		return len(left) == 0, "left: " + strings.Join(left, ", "), err
	})
	if err != nil {
		return err
	}
	s.console.done("nothing is left of %d objects after %s: owner references and the garbage collector see to it",
		len(before),
		formatDuration(time.Since(begin)))
	return nil
}
