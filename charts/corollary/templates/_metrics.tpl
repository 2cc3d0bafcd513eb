{{/* Matchers that select the processes of this release among all that Prometheus knows. */}}
{{- define "corollary.processes" -}}
{{- $default := printf "job=%q, namespace=%q" (printf "%s-metrics" (include "corollary.fullname" .)) .Release.Namespace -}}
{{- default $default .Values.metrics.prometheusRule.selector -}}
{{- end -}}

{{/* The rules of files/alerts.yaml, with what values say of them. */}}
{{- define "corollary.alerts" -}}
{{- $values := .Values.metrics.prometheusRule -}}
{{- $tokens := dict
  "$(process)" (include "corollary.processes" .)
  "$(by)" (join ", " $values.by)
  "$(namespace)" .Release.Namespace
  "$(pods)" (printf "app.kubernetes.io/instance=%s" .Release.Name) -}}
{{- $rules := list -}}
{{- range $alert := (.Files.Get "files/alerts.yaml" | fromYaml).alerts -}}
{{- if not (has $alert.alert (default list $values.disabled)) -}}
{{- $own := get (default dict $values.alerts) $alert.alert | default dict -}}
{{- if and (hasKey $own "threshold") (not (hasKey $alert "threshold")) -}}
{{- fail (printf "metrics.prometheusRule.alerts.%s.threshold: this alert has no threshold; leave it out" $alert.alert) -}}
{{- end -}}
{{- $_ := set $tokens "$(threshold)" ((hasKey $own "threshold" | ternary $own.threshold $alert.threshold) | toString) -}}
{{- $text := dict "expr" $alert.expr "summary" $alert.summary "description" $alert.description -}}
{{- range $key, $value := $text -}}
{{- range $token, $stands := $tokens -}}
{{- $value = replace $token $stands $value -}}
{{- end -}}
{{- $_ := set $text $key $value -}}
{{- end -}}
{{- $annotations := pick $text "summary" "description" -}}
{{- with $values.runbookURL -}}
{{- $_ := set $annotations "runbook_url" (printf "%s#%s" . (lower $alert.alert)) -}}
{{- end -}}
{{- $labels := merge (dict "severity" ($own.severity | default $alert.severity)) (default dict $values.additionalLabels) -}}
{{- $rule := dict "alert" $alert.alert "expr" $text.expr "for" ($own.for | default $alert.for) "labels" $labels "annotations" $annotations -}}
{{- $rules = append $rules $rule -}}
{{- end -}}
{{- end -}}
{{- toYaml $rules -}}
{{- end -}}
