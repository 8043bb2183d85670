package org.ondeviceprofiler.virtual

import org.ondeviceprofiler.core.Tensor

private const val MOST_LOOKED_AT = 4096
private const val PRIME = 1099511628211L

/** Return a number that changes with a function and what it is fed; of large tensors some values stand for all. */
internal fun fingerprint(component: String, function: String, feeds: Map<String, Tensor>): Long {
    var hash = "$component.$function".hashCode().toLong()
    for (name in feeds.keys.sorted()) {
        hash = mixed(hash, name.hashCode())
        feeds[name]?.let { hash = of(it, hash) }
    }
    return hash
}

private fun of(tensor: Tensor, start: Long): Long {
    val words = tensor.data.asIntBuffer()
    val step = 1 + words.limit() / MOST_LOOKED_AT
    var hash = start
    for (index in 0 until words.limit() step step) hash = mixed(hash, words.get(index))
    return hash
}

private fun mixed(hash: Long, word: Int): Long = (hash xor word.toLong()) * PRIME + (hash ushr 29)
