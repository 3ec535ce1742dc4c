{{/* Executors as pods: the settings of Spark, and the template of their pods. */}}
{{- define "ingestd.driverPort" -}}7078{{- end }}
{{- define "ingestd.driverBlocksPort" -}}7079{{- end }}
{{- define "ingestd.executorBlocksPort" -}}7080{{- end }}
{{- define "ingestd.executorFilesPort" -}}7081{{- end }}

{{/*
Settings of Spark, each of which config.spark may replace. Beside its heap an executor has 384 MiB for
the JVM and the process from which Python workers are forked, and one worker for each core. It is
owned by the daemon's pod, and deleted with it.
*/}}
{{- define "ingestd.sparkSettings" -}}
{{- $name := include "ingestd.fullname" . -}}
{{- if .Values.existingConfigMap }}
{{- fail "executors.instances needs `config`: the chart adds settings of Spark to it, which it cannot do to existingConfigMap" }}
{{- end }}
{{- with .Values.executors -}}
spark.master: k8s://https://kubernetes.default.svc
spark.executor.instances: {{ .instances | quote }}
spark.executor.cores: {{ .cores | quote }}
spark.executor.memory: {{ .memory }}
spark.executor.memoryOverhead: {{ default (printf "%dm" (add 384 (mul 640 (int .cores)))) .memoryOverhead }}
{{- with dig "requests" "cpu" "" .resources }}
spark.kubernetes.executor.request.cores: {{ . | quote }}
{{- end }}
spark.network.crypto.enabled: {{ .encryption | quote }}
{{- if not .encryption }}
spark.executorEnv.INGESTD_EXCHANGE_PORT: {{ include "ingestd.executorFilesPort" $ | quote }}
{{- end }}
{{- end }}
spark.kubernetes.namespace: {{ .Release.Namespace }}
spark.kubernetes.container.image: {{ include "ingestd.image" . }}
spark.kubernetes.container.image.pullPolicy: {{ .Values.image.pullPolicy }}
spark.kubernetes.driver.pod.name: {{ $name }}-0
spark.kubernetes.executor.podTemplateFile: /etc/ingestd/executor.yaml
spark.kubernetes.executor.podTemplateContainerName: executor
spark.kubernetes.executor.disableConfigMap: "true"
spark.driver.host: {{ $name }}-0.{{ $name }}-pods.{{ .Release.Namespace }}.svc
spark.driver.bindAddress: 0.0.0.0
spark.port.maxRetries: "0"
spark.driver.port: {{ include "ingestd.driverPort" . | quote }}
spark.driver.blockManager.port: {{ include "ingestd.driverBlocksPort" . | quote }}
spark.blockManager.port: {{ include "ingestd.executorBlocksPort" . | quote }}
{{- end }}

{{/* Spark adds the name, the owner, labels, resources, variables and the argument `executor`. */}}
{{- define "ingestd.executorPod" -}}
{{- toYaml (mergeOverwrite (include "ingestd.executorDefaults" . | fromYaml) .Values.executors.podTemplate) -}}
{{- end }}

{{- define "ingestd.executorDefaults" -}}
apiVersion: v1
kind: Pod
metadata:
  labels:
    {{- include "ingestd.podLabels" (list . "executor") | nindent 4 }}
spec:
  {{- include "ingestd.placement" (list . "executor") | nindent 2 }}
  containers:
    - name: executor
      {{- include "ingestd.container" (list . "executor") | nindent 6 }}
      {{- with .Values.executors.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}
