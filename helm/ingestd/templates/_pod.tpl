{{/*
What the pods of the daemon, of jobs and of executors have in common: (list root component). Executors
run on any node, without the configuration. Spark takes their local volume by its name,
spark-local-dir-1, instead of adding one without a size.
*/}}
{{- define "ingestd.placement" -}}
{{- $component := index . 1 -}}
{{- $root := index . 0 -}}
{{- with $root -}}
serviceAccountName: {{ include "ingestd.serviceAccount" . }}
automountServiceAccountToken: {{ include "ingestd.token" (list . $component) }}
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- range $key := list "nodeSelector" "tolerations" "affinity" "priorityClassName" "hostAliases" "dnsConfig" }}
{{- with index $root.Values $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
volumes:
  {{- if ne $component "executor" }}
  - name: config
    configMap:
      name: {{ include "ingestd.configMap" . }}
  {{- end }}
  {{- with .Values.existingSecret }}
  - name: secrets
    secret:
      secretName: {{ . }}
      defaultMode: 0440
  {{- end }}
  - name: {{ include "ingestd.scratch" $component }}
    emptyDir:
      sizeLimit: {{ .Values.scratchSize }}
  {{- if include "ingestd.mountsLake" (list . $component) }}
  - name: lake
    persistentVolumeClaim:
      claimName: {{ include "ingestd.claim" . }}
  {{- end }}
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Whether a component has a token for the API server: the daemon with executors, which it creates. */}}
{{- define "ingestd.token" -}}
{{- $values := (index . 0).Values -}}
{{- $creates := and (eq (index . 1) "daemon") (gt (int $values.executors.instances) 0) -}}
{{- or $creates (and $values.serviceAccount.automountToken (ne (index . 1) "executor")) -}}
{{- end }}

{{- define "ingestd.scratch" -}}
{{- ternary "spark-local-dir-1" "scratch" (eq . "executor") -}}
{{- end }}

{{/* Not empty if pods of a component mount the volume of the warehouse. */}}
{{- define "ingestd.mountsLake" -}}
{{- $component := index . 1 -}}
{{- with (index . 0).Values.persistence -}}
{{- if and .enabled (or (ne $component "executor") (has "ReadWriteMany" .accessModes)) }}true{{ end -}}
{{- end -}}
{{- end }}

{{/* A volume of one node: pods beside the daemon go where it is, if they can. */}}
{{- define "ingestd.beside" -}}
{{- if and .Values.persistence.enabled (not .Values.affinity) (not (has "ReadWriteMany" .Values.persistence.accessModes)) -}}
affinity:
  podAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "ingestd.daemon" . | nindent 14 }}
{{- end }}
{{- end }}

{{/* The container of a component: (list root component). */}}
{{- define "ingestd.container" -}}
{{- $component := index . 1 -}}
{{- with index . 0 -}}
image: {{ include "ingestd.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- toYaml .Values.containerSecurityContext | nindent 2 }}
{{- with .Values.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  {{- if ne $component "executor" }}
  - name: config
    mountPath: /etc/ingestd
    readOnly: true
  {{- end }}
  {{- if .Values.existingSecret }}
  - name: secrets
    mountPath: /run/secrets/ingestd
    readOnly: true
  {{- end }}
  - name: {{ include "ingestd.scratch" $component }}
    mountPath: /tmp
  {{- if include "ingestd.mountsLake" (list . $component) }}
  - name: lake
    mountPath: {{ .Values.persistence.mountPath }}
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}
