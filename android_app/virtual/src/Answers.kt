package org.ondeviceprofiler.virtual

import org.ondeviceprofiler.core.JsonInteger
import org.ondeviceprofiler.core.JsonObject
import org.ondeviceprofiler.core.JsonReal
import org.ondeviceprofiler.core.JsonText

/** Return an integer of the model's answer, or null where it has none. */
internal fun JsonObject.integer(name: String): Long? = (this[name] as? JsonInteger)?.value

/** Return an integer that the model's answer must have. Throws ModelLost. */
internal fun JsonObject.needInteger(name: String): Long = integer(name) ?: throw ModelLost("its answer lacks $name")

/** Return a number of the model's answer, or null where it has none. */
internal fun JsonObject.real(name: String): Double? = (this[name] as? JsonReal)?.value ?: integer(name)?.toDouble()

/** Return a text of the model's answer, or null where it has none. */
internal fun JsonObject.text(name: String): String? = (this[name] as? JsonText)?.value
