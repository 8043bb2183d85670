package org.ondeviceprofiler.core

import java.util.Locale

/**
 * The gate before each spaced repetition: as cool and as quick as when the job began; what cannot be read holds
 * nothing up. Other apps' work would, but Android does not tell it.
 *
 * Temperature and clock decide, not status enums, which say "nominal" while phones slow down; the ratio is that of
 * AndroidX Benchmark.
 */
internal class Readiness(
    private val temperatureMillicelsius: () -> Long?,
    private val canaryNs: () -> Long,
    private val coolCanaryNs: Long,
) {
    private val startMillicelsius = temperatureMillicelsius()

    /** Say what keeps the machine from being ready, or null. */
    fun lack(): String? = tooHot() ?: tooSlow()

    private fun tooHot(): String? {
        val now = temperatureMillicelsius() ?: return null
        val start = startMillicelsius ?: return null
        if (now <= start + MARGIN_MILLICELSIUS) return null
        return "still at ${degrees(now)} °C, ${degrees(now - start)} °C above the start"
    }

    private fun tooSlow(): String? {
        val ratio = if (coolCanaryNs > 0) canaryNs().toDouble() / coolCanaryNs else 1.0
        if (ratio <= CANARY_RATIO) return null
        val percent = String.format(Locale.ROOT, "%.0f", 100 * (ratio - 1))
        return "the processor is $percent % slower than when the job began"
    }

    private fun degrees(millicelsius: Long): String = String.format(Locale.ROOT, "%.1f", millicelsius / 1000.0)

    private companion object {
        const val MARGIN_MILLICELSIUS = 3000
        const val CANARY_RATIO = 1.10
    }
}
