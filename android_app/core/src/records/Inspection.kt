package org.ondeviceprofiler.core

/** The answer to `inspect`. */
internal data class Inspection(val receipts: List<Receipt>) : Reply {
    override fun toJson(): JsonObject = jsonOf("reply" to "inspection", "receipts" to receipts)
}
