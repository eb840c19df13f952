"""Products and the operations between them, beside scipy and plain loops."""

import gc

import numpy as np
import pytest
import scipy.sparse as ss

import spgraph

REAL = [np.float32, np.float64]
WHOLE = [np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64]


def assert_same(found, expected, exact=False):
    """The same class, types, pattern but for zeros, which scipy drops, and, within rounding, values."""
    assert type(found) is type(expected) and found.format == expected.format
    assert found.dtype == expected.dtype and found.shape == expected.shape
    f, e = found.tocsr().copy(), expected.tocsr().copy()
    f.check_format(full_check=True)
    assert f.has_canonical_format
    f.eliminate_zeros()
    e.eliminate_zeros()
    e.sort_indices()
    assert (f.indptr == e.indptr).all() and (f.indices == e.indices).all()
    if exact or f.dtype.kind in "biu":
        assert (f.data == e.data).all()
    else:
        np.testing.assert_allclose(f.data, e.data, rtol=1e-4 if f.dtype == np.float32 else 1e-12, atol=1e-5)


@pytest.mark.parametrize("dtype", REAL + WHOLE)
@pytest.mark.parametrize("kind", [ss.csr_array, ss.csr_matrix])
def test_product_is_scipys(make, dtype, kind):
    a, b = make(40, 30, dtype=dtype, kind=kind), make(30, 50, dtype=dtype, kind=kind)
    assert_same(spgraph.matmul(a, b), a @ b)


@pytest.mark.parametrize("first", REAL + WHOLE)
@pytest.mark.parametrize("second", REAL + WHOLE)
def test_types_are_promoted_as_in_scipy(make, first, second):
    a, b = make(20, 20, dtype=first), make(20, 20, dtype=second)
    assert_same(spgraph.matmul(a, b), a @ b)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_index_types_stay(make, index):
    a = make(40, 40, index=index)
    c = spgraph.matmul(a, a)
    assert c.indices.dtype == c.indptr.dtype == index
    assert_same(c, a @ a)


@pytest.mark.parametrize("format", ["csc", "coo", "lil", "dok", "bsr", "dia"])
def test_formats_come_back(make, format):
    a = make(20, 20).asformat(format)
    c = spgraph.matmul(a, a)
    assert c.format == format and type(c) is type(a)
    np.testing.assert_allclose(c.toarray(), a.toarray() @ a.toarray(), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128, np.longdouble])
def test_other_types_are_refused(make, dtype):
    a = make(5, 5, 0.5).astype(dtype)
    with pytest.raises(NotImplementedError, match="float32, float64, whole numbers"):
        spgraph.matmul(a, a)


def test_whole_numbers_that_float64_may_round_are_refused():
    a = ss.csr_array(np.array([[2**27, 1], [0, 2**27]], dtype=np.int64))
    with pytest.raises(NotImplementedError, match="2\\^53"):
        spgraph.matmul(a, a)
    b = ss.csr_array(np.array([[2**53 + 1]], dtype=np.int64))
    with pytest.raises(NotImplementedError, match="2\\^53"):
        spgraph.triu(b)
    small = ss.csr_array(np.array([[2**25, 1], [0, 2**25]], dtype=np.int64))
    assert (spgraph.matmul(small, small) != small @ small).nnz == 0


def test_nothing_is_copied(make):
    a = make(30, 30)
    before = [array.copy() for array in (a.indptr, a.indices, a.data)]
    c = spgraph.matmul(a, a)
    assert all((x == y).all() for x, y in zip(before, (a.indptr, a.indices, a.data)))
    block = c.data.base
    while isinstance(block, np.ndarray):
        block = block.base
    assert type(block).__name__ == "Block"  # the library's memory
    a.data[:] = 2
    np.testing.assert_allclose(spgraph.matmul(a, a).toarray(), (a @ a).toarray())


def test_results_outlive_everything(make):
    a = make(50, 50)
    kept = [spgraph.matmul(a, a) for _ in range(20)]
    plan = spgraph.MatmulPlan(a, a)
    kept.append(plan())
    expected = a @ a
    del plan, a
    gc.collect()
    columns = [c.indices for c in kept]
    data = [c.data for c in kept]
    del kept
    gc.collect()
    for c, d in zip(columns, data):
        assert (c == expected.sorted_indices().indices).all()
        np.testing.assert_allclose(d, expected.sorted_indices().data)


def test_unsorted_rows_and_duplicates_are_added_up():
    a = ss.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3, 3, 3])), shape=(3, 3))
    c = spgraph.matmul(a, ss.csr_array(np.eye(3)))
    assert (c.toarray() == [[2, 0, 4], [0, 0, 0], [0, 0, 0]]).all()
    assert list(a.indices) == [2, 0, 2]


def test_empty_shapes():
    for rows, inner, cols in ((0, 0, 0), (0, 3, 2), (3, 0, 2), (3, 2, 0), (1, 1, 1)):
        a, b = ss.csr_array((rows, inner)), ss.csr_array((inner, cols))
        assert_same(spgraph.matmul(a, b), a @ b)


def test_wrong_matrices_are_refused(make):
    a = make(4, 5, 0.5)
    with pytest.raises(ValueError, match="5"):
        spgraph.matmul(a, a)
    with pytest.raises(TypeError, match="sparse matrix.*SpmmPlan"):
        spgraph.matmul(a, np.eye(5))
    with pytest.raises(ValueError, match="semiring"):
        spgraph.matmul(a, a.T.tocsr(), semiring="times")
    with pytest.raises(ValueError, match="mask"):
        spgraph.matmul(a, a.T.tocsr(), complement=True)
    bad = ss.csr_array((4, 4))
    bad.indptr = np.array([0, 1, 1, 1, 1], dtype=np.int32)
    bad.indices, bad.data = np.array([9], dtype=np.int32), np.ones(1)
    with pytest.raises(ValueError, match="column outside"):
        spgraph.matmul(bad, bad)
    bad.indptr = np.array([0, 7, 7, 7, 7], dtype=np.int32)
    with pytest.raises(ValueError, match="contradicts itself"):
        spgraph.matmul(bad, bad)


def reference(a, b, semiring):
    """A dense result and where it has entries, by plain loops."""
    x, y = a.toarray(), b.toarray()
    there, other = abs(a).sign().toarray() != 0, abs(b).sign().toarray() != 0
    value, entry = np.zeros((a.shape[0], b.shape[1])), np.zeros((a.shape[0], b.shape[1]), bool)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            inner = np.flatnonzero(there[i] & other[:, j])
            if not len(inner):
                continue
            entry[i, j] = True
            value[i, j] = {"plus_times": lambda: (x[i, inner] * y[inner, j]).sum(), "plus_pair": lambda: len(inner),
                           "min_plus": lambda: (x[i, inner] + y[inner, j]).min(),
                           "max_times": lambda: (x[i, inner] * y[inner, j]).max(), "or_and": lambda: 1}[semiring]()
    return value, entry


@pytest.mark.parametrize("semiring", ["plus_times", "plus_pair", "min_plus", "max_times", "or_and"])
def test_semirings_masks_and_transposes(make, semiring):
    a, b, mask = make(12, 9, 0.3), make(9, 11, 0.3), make(12, 11, 0.4)
    value, entry = reference(a, b, semiring)
    masked = mask.toarray() != 0
    for options, wanted in (({}, entry), ({"mask": mask}, entry & masked),
                            ({"mask": mask, "complement": True}, entry & ~masked)):
        for x, y, turned in ((a, b, {}), (a.T.tocsr(), b, {"transpose_a": True}),
                             (a, b.T.tocsr(), {"transpose_b": True})):
            c = spgraph.matmul(x, y, semiring=semiring, **options, **turned)
            assert c.dtype == (bool if semiring == "or_and" else np.float64)
            assert (c.toarray() != 0).sum() <= wanted.sum() == c.nnz
            np.testing.assert_allclose(c.toarray(), np.where(wanted, value, 0), atol=1e-12)


def test_top_k_of_a_product(make):
    a = make(30, 30, 0.2)
    full, c = (a @ a).toarray(), spgraph.matmul(a, a, top_k=3)
    pattern = (abs(a).sign() @ abs(a).sign()).toarray() != 0
    for i in range(30):
        expected = sorted(full[i, pattern[i]], reverse=True)[:3]
        np.testing.assert_allclose(sorted(c[[i]].data, reverse=True), expected)


def test_plans(make):
    a, b = make(20, 20), make(20, 20)
    for options in ({}, {"transpose_a": True}, {"transpose_b": True}):
        plan = spgraph.MatmulPlan(a, b, **options)
        x, y = a.copy(), b.copy()
        x.data, y.data = np.arange(a.nnz, dtype=float), np.arange(b.nnz, dtype=float) + 1
        expected = spgraph.matmul(x, y, **options)
        assert_same(plan(x.data, y.data), expected, exact=True)
        assert_same(plan(), spgraph.matmul(a, b, **options), exact=True)
        assert plan.nnz == expected.nnz and plan.products > 0
    with pytest.raises(ValueError, match="entries"):
        plan(np.ones(3))
    with pytest.raises(ValueError, match="tocsr"):
        spgraph.MatmulPlan(a.tocoo(), b)


@pytest.mark.parametrize("dtype", REAL)
def test_plans_fill_the_callers_matrices(make, dtype):
    a, b = make(30, 20, dtype=dtype), make(20, 25, dtype=dtype)
    plan = spgraph.MatmulPlan(a, b)
    product = spgraph.matmul(a, b)
    for out in (plan(), product.copy(), ss.csr_matrix(product, copy=True)):
        data = out.data
        data[:] = np.nan
        assert plan(out=out) is out and out.data is data
        assert (data == product.data).all()
        plan(out=out, alpha=2, beta=3)
        np.testing.assert_allclose(data, 5 * product.data, rtol=1e-6)
        plan(out=out, alpha=0.5)
        assert (data == product.data / 2).all()
    assert (plan(alpha=2).data == product.data * 2).all()
    shifted, frozen = product.copy(), product.copy()
    shifted.indices = (shifted.indices + 1) % 25
    frozen.data.flags.writeable = False
    for out, message in ((shifted, "entries of the product"), (product[:-1], "entries of the product"),
                         (frozen, "writable"), (product.tocsc(), "compressed rows"),
                         (product.astype(complex), "type of the result"), (product.data, "compressed rows")):
        with pytest.raises(ValueError, match=message):
            plan(out=out)
    with pytest.raises(ValueError, match="no C"):
        plan(beta=1)
    square = ss.csr_array(np.eye(4, dtype=dtype))
    with pytest.raises(ValueError, match="operand"):
        spgraph.MatmulPlan(square, square)(out=square)
    with pytest.raises(ValueError, match="no sums"):
        spgraph.MatmulPlan(a, b, semiring="min_plus")(alpha=2)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("transpose", [False, True])
def test_dense_products(make, rng, dtype, transpose):
    a = make(30, 20, dtype=dtype)
    s = a.T if transpose else a
    plan = spgraph.SpmmPlan(a, 8, transpose=transpose)
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    for shape in ((s.shape[1], 8), (s.shape[1], 1), (s.shape[1],), (s.shape[1], 0), (s.shape[1], 33)):
        x = rng.standard_normal(shape).astype(dtype)
        y = plan(x)
        assert y.dtype == dtype and y.shape == (s.shape[0],) + shape[1:]
        np.testing.assert_allclose(y, s @ x, **close)
    x = rng.standard_normal((s.shape[1], 6)).astype(dtype)
    for view in (x[:, ::2], x[:, 1:4], np.asfortranarray(x), x[::-1], x.astype(np.int64)):
        np.testing.assert_allclose(plan(view), s @ view.astype(dtype), **close)
    for out in (np.ones((s.shape[0], 6), dtype), np.ones((s.shape[0], 6), dtype, order="F")):
        assert plan(x, out=out, alpha=2, beta=3) is out
        np.testing.assert_allclose(out, 2 * (s @ x) + 3, **close)
    with pytest.raises(ValueError, match="out"):
        plan(x, beta=1)
    with pytest.raises(TypeError, match="matmul multiplies two"):
        plan(ss.csr_array(x))
    with pytest.raises(ValueError):
        plan(x[1:])


@pytest.mark.parametrize("dtype", REAL)
def test_batches_of_dense_products(make, rng, dtype):
    a, x = make(30, 20, dtype=dtype), rng.standard_normal((4, 20, 5)).astype(dtype)
    plan = spgraph.SpmmPlan(a, 5)
    expected = np.stack([a @ one for one in x])
    by_columns = np.ascontiguousarray(x.transpose(0, 2, 1)).transpose(0, 2, 1)
    beside = np.ascontiguousarray(x.transpose(1, 0, 2)).transpose(1, 0, 2)
    for form in (x, by_columns, beside, x[::2], x[::-1], x.astype(np.int64)):
        picked = expected if form.shape == x.shape else expected[::2]
        if form.dtype == np.int64:
            picked = np.stack([a @ one for one in form.astype(dtype)])
        elif form.strides[0] < 0:
            picked = picked[::-1]
        y = plan(form)
        assert y.dtype == dtype and y.shape == (len(form), 30, 5)
        np.testing.assert_allclose(y, picked, rtol=1e-4, atol=1e-5)
    out = np.ones((30, 4, 5), dtype).transpose(1, 0, 2)
    assert plan(x, out=out, beta=2) is out
    np.testing.assert_allclose(out, expected + 2, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="dimensions"):
        plan(x[None])


@pytest.mark.parametrize("reduce", ["mean", "max", "min"])
def test_reductions(make, rng, reduce):
    a, x = make(15, 12, 0.2), rng.standard_normal((12, 5))
    y = spgraph.SpmmPlan(a, 5, reduce=reduce)(x)
    for i in range(15):
        part = a.indices[a.indptr[i]:a.indptr[i + 1]], a.data[a.indptr[i]:a.indptr[i + 1]]
        terms = part[1][:, None] * x[part[0]]
        np.testing.assert_allclose(y[i], getattr(terms, reduce)(axis=0) if len(terms) else 0)


@pytest.mark.parametrize("dtype", REAL + [np.int32])
def test_between_products(make, dtype):
    a, b = make(20, 20, 0.2, dtype=dtype), make(20, 20, 0.2, dtype=dtype)
    np.testing.assert_allclose(spgraph.add(a, b).toarray(), (a + b).toarray(), rtol=1e-6)
    np.testing.assert_allclose(spgraph.add(a, b, 2, -3).toarray(), (2 * a - 3 * b).toarray(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(spgraph.hadamard(a, b).toarray(), a.toarray() * b.toarray(), rtol=1e-6)
    assert spgraph.add(a, b).dtype == spgraph.hadamard(a, b).dtype == dtype
    for k in (-2, 0, 1, 50):
        assert_same(spgraph.triu(a, k), ss.csr_array(ss.triu(a, k).tocsr()), exact=True)
        assert_same(spgraph.tril(a, k), ss.csr_array(ss.tril(a, k).tocsr()), exact=True)
    kept = spgraph.top_k(a, 2)
    for i in range(20):
        row = a.data[a.indptr[i]:a.indptr[i + 1]]
        assert sorted(kept[[i]].data) == sorted(row)[max(len(row) - 2, 0):]


@pytest.mark.parametrize("dtype", REAL + [np.int16, bool])
@pytest.mark.parametrize("kind", [ss.csr_array, ss.csr_matrix, ss.csc_array, ss.coo_array])
def test_transposes(make, dtype, kind):
    a = kind(make(30, 20, dtype=dtype))
    t = spgraph.transpose(a)
    assert type(t) is kind and t.dtype == dtype
    assert_same(ss.csr_array(t), ss.csr_array(a.T), exact=True)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_transposes_fill_the_callers_matrices(make, dtype, index):
    a = make(30, 20, dtype=dtype)
    expected = spgraph.transpose(a)
    out = expected.copy()
    out.indptr = np.full(21, 7, index)
    out.indices[:], out.data[:] = 3, np.nan
    arrays = out.indptr, out.indices, out.data
    assert spgraph.transpose(a, out=out) is out
    assert all(x is y for x, y in zip(arrays, (out.indptr, out.indices, out.data)))
    assert_same(out, expected, exact=True)
    frozen, wide = expected.copy(), expected.copy()
    frozen.data.flags.writeable = False
    wide.indices = columns = np.full(expected.nnz, 5, np.int64)
    assert spgraph.transpose(a, out=wide) is wide and wide.indices is columns
    assert_same(wide, expected, exact=True)
    for bad, message in ((a, "shape"), (frozen, "writable"), (expected.tocsc(), "compressed rows"),
                         (expected.astype(complex), "float32"), (expected.data, "compressed rows"),
                         (ss.csr_array((20, 30), dtype=dtype), "entries")):
        with pytest.raises(ValueError, match=message):
            spgraph.transpose(a, out=bad)
    square = make(20, 20, dtype=dtype)
    with pytest.raises(ValueError, match="overlap"):
        spgraph.transpose(square, out=square)


def test_factors_make_whole_numbers_real(make):
    a = make(5, 5, 0.5, dtype=np.int32)
    assert spgraph.add(a, a, 0.5, 0.25).dtype == np.float64
    np.testing.assert_allclose(spgraph.add(a, a, 0.5, 0.25).toarray(), 0.75 * a.toarray())


def test_threads_do_not_change_a_bit(make):
    a = make(3000, 3000, 0.003)
    try:
        results = []
        for threads in (1, 2, 5):
            spgraph.set_threads(threads)
            assert spgraph.get_threads() == threads
            results.append(spgraph.matmul(a, a))
            assert spgraph.MatmulPlan(a, a)._context.key[:2] == ("cpu", threads)
        assert all((c != results[0]).nnz == 0 for c in results)
    finally:
        spgraph.set_threads(0)
    with pytest.raises(ValueError):
        spgraph.set_threads(-1)


def test_device_of_matrices_of_scipy(make):
    a = make(60, 60, 0.1)
    here, b = spgraph.matmul(a, a), a.tocsc()
    for device in ("cpu", "auto"):  # "auto" is a GPU where there is one, with the same bits
        for made, expected in ((spgraph.matmul(a, a, device=device), here),
                               (spgraph.matmul(b, b, device=device), spgraph.matmul(b, b)),
                               (spgraph.matmul(a, a, top_k=3, device=device), spgraph.matmul(a, a, top_k=3)),
                               (spgraph.MatmulPlan(a, a, device=device)(2 * a.data), spgraph.matmul(2 * a, a)),
                               (spgraph.similarity(a, top_k=3, device=device), spgraph.similarity(a, top_k=3))):
            assert type(made) is type(expected) and made.data.tobytes() == expected.data.tobytes()
            np.testing.assert_array_equal(made.indices, expected.indices)
        plan, x = spgraph.SpmmPlan(a, 3, device=device), np.arange(180.0).reshape(60, 3)
        np.testing.assert_allclose(plan(x, out=np.ones((60, 3)), beta=2), a @ x + 2)
    for call in (spgraph.matmul, spgraph.similarity, spgraph.MatmulPlan,
                 lambda x, _, device: spgraph.SpmmPlan(x, 3, device=device)):
        with pytest.raises(RuntimeError, match="CUDA|device"):
            call(a, a, device="cuda:1023")
        with pytest.raises(ValueError, match="tpu"):
            call(a, a, device="tpu")
