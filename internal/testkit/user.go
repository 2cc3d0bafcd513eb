package testkit

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// User returns a client configuration for a user who has, in the whole cluster, the rights in the rules and those of
// every authenticated user (discovery). The rights are in force on return and end with the test.
func User(t testing.TB, name string, rules ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	unique := name + "-" + Unique(t)
	config, err := plane().User(unique)
	if err != nil {
		t.Fatal(err)
	}
	named := metav1.ObjectMeta{Name: unique}
	grants := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: named, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: named,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: unique},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: unique}},
		},
	}
	for _, grant := range grants {
		if err := shared(t).typed.Create(t.Context(), grant); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { // the context of the test has ended
			if err := shared(t).typed.Delete(context.Background(), grant); err != nil {
				t.Log(err)
			}
		})
	}
	for _, rule := range rules {
		waitAuthorized(t, unique, rule)
	}
	return config
}

// waitAuthorized waits until the API server, which watches roles, grants the user the first right of the rule.
func waitAuthorized(t testing.TB, user string, rule rbacv1.PolicyRule) {
	t.Helper()
	spec := authorizationv1.SubjectAccessReviewSpec{User: user}
	switch {
	case len(rule.Verbs) > 0 && len(rule.APIGroups) > 0 && len(rule.Resources) > 0:
		attributes := &authorizationv1.ResourceAttributes{Verb: rule.Verbs[0], Group: rule.APIGroups[0]}
		attributes.Resource, attributes.Subresource, _ = strings.Cut(rule.Resources[0], "/")
		if len(rule.ResourceNames) > 0 {
			attributes.Name = rule.ResourceNames[0]
		}
		spec.ResourceAttributes = attributes
	case len(rule.Verbs) > 0 && len(rule.NonResourceURLs) > 0:
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{
			Verb: rule.Verbs[0], Path: rule.NonResourceURLs[0],
		}
	default:
		t.Fatalf("the rule allows nothing: %v", rule)
	}
	Eventually(t, Patience, func() (bool, string) {
		review := &authorizationv1.SubjectAccessReview{Spec: spec}
		if err := shared(t).typed.Create(t.Context(), review); err != nil {
			return false, err.Error()
		}
		return review.Status.Allowed, fmt.Sprintf("%s may not %v", user, rule)
	})
}
