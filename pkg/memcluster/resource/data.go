package resource

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateData validates ConfigMaps and Secrets: keys, size, what the type of a Secret requires, and what is immutable.
// live is nil for a new object.
func (r *Resource) validateData(u, live *unstructured.Unstructured) field.ErrorList {
	switch r.GVK {
	case corev1.SchemeGroupVersion.WithKind("ConfigMap"):
		now, before := &corev1.ConfigMap{}, &corev1.ConfigMap{}
		if !parse(u, now) || live != nil && !parse(live, before) {
			return nil
		}
		return validateConfigMap(now, before)
	case corev1.SchemeGroupVersion.WithKind("Secret"):
		now, before := &corev1.Secret{}, &corev1.Secret{}
		if !parse(u, now) || live != nil && !parse(live, before) {
			return nil
		}
		errs := validateSecret(now, before)
		if live != nil {
			errs = append(errs, validation.ValidateImmutableField(now.Type, before.Type, field.NewPath("type"))...)
		}
		return errs
	}
	return nil
}

// parse reports whether an object is one of its Go type, which was checked when it was read.
func parse(u *unstructured.Unstructured, into any) bool {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into) == nil
}

func validateConfigMap(now, before *corev1.ConfigMap) field.ErrorList {
	errs := validateImmutable(before.Immutable, now.Immutable, map[string][2]any{
		"data": {before.Data, now.Data}, "binaryData": {before.BinaryData, now.BinaryData}})
	size := 0
	for key, value := range now.Data {
		errs, size = append(errs, validateKey("data", key)...), size+len(value)
		if _, twice := now.BinaryData[key]; twice {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(key), key, "duplicate of key present in binaryData"))
		}
	}
	for key, value := range now.BinaryData {
		errs, size = append(errs, validateKey("binaryData", key)...), size+len(value)
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
	return errs
}

func validateSecret(now, before *corev1.Secret) field.ErrorList {
	errs := validateImmutable(before.Immutable, now.Immutable, map[string][2]any{"data": {before.Data, now.Data}})
	size, data := 0, field.NewPath("data")
	for key, value := range now.Data {
		errs, size = append(errs, validateKey("data", key)...), size+len(value)
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(data, "", corev1.MaxSecretSize))
	}
	required := map[corev1.SecretType][]string{
		corev1.SecretTypeDockercfg: {corev1.DockerConfigKey}, corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
		corev1.SecretTypeSSHAuth: {corev1.SSHAuthPrivateKey},
		corev1.SecretTypeTLS:     {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
	}[now.Type]
	for _, key := range required {
		if value, ok := now.Data[key]; !ok || len(value) == 0 && now.Type == corev1.SecretTypeSSHAuth {
			errs = append(errs, field.Required(data.Key(key), ""))
		} else if now.Type == corev1.SecretTypeDockercfg || now.Type == corev1.SecretTypeDockerConfigJson {
			if err := json.Unmarshal(value, &map[string]any{}); err != nil {
				errs = append(errs, field.Invalid(data.Key(key), "<secret contents redacted>", err.Error()))
			}
		}
	}
	if now.Type == corev1.SecretTypeBasicAuth && now.Data[corev1.BasicAuthUsernameKey] == nil &&
		now.Data[corev1.BasicAuthPasswordKey] == nil {
		errs = append(errs, field.Required(data.Key(corev1.BasicAuthUsernameKey), ""),
			field.Required(data.Key(corev1.BasicAuthPasswordKey), ""))
	}
	return errs
}

func validateKey(name, key string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range utilvalidation.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(field.NewPath(name).Key(key), key, message))
	}
	return errs
}

// validateImmutable refuses changes of an object whose field immutable is true.
func validateImmutable(before, now *bool, fields map[string][2]any) field.ErrorList {
	if before == nil || !*before {
		return nil
	}
	var errs field.ErrorList
	changed := maps.Clone(fields)
	changed["immutable"] = [2]any{true, now != nil && *now}
	for name, values := range changed {
		if !equality.Semantic.DeepEqual(values[0], values[1]) {
			errs = append(errs, field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set"))
		}
	}
	return errs
}
