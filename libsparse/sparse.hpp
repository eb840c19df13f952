// libsparse for C++17: objects that own what the library makes, exceptions in place of statuses, spans over arrays.
//
// sparse.h is the manual; what is here only wraps it. Objects hold their context, so they may end in any order. A call
// that has no wrapper takes context.get() and matrix.get() (an sp_csr): sparse::check(context, sp_csr_add(...)).
//
//   sparse::context context("cpu");
//   sparse::csr<double> a = sparse::csr<double>::from_triples(context, 3, 3, rows, columns, values);
//   sparse::csr<double> c = a * a;
//   for (double value : c.values()) ...
#ifndef SPARSE_HPP
#define SPARSE_HPP

#include <sparse.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sparse {

// A failed call, with the library's sentence.
class error : public std::runtime_error {
  public:
    error(sp_status status, const std::string &sentence) : std::runtime_error(sentence), status_(status) {}
    sp_status status() const noexcept { return status_; }

  private:
    sp_status status_;
};

inline void check(sp_context *context, sp_status status)
{
    if (status == SP_OK) return;
    const char *sentence = sp_last_error(context);
    throw error(status, *sentence ? sentence : sp_status_string(status));
}

// An array that somebody else owns.
template <typename T> class span {
  public:
    constexpr span() noexcept = default;
    constexpr span(T *data, std::int64_t size) noexcept : data_(data), size_(size) {}
    template <typename Container, typename = decltype(static_cast<T *>(std::declval<Container &>().data()))>
    span(Container &container) noexcept : data_(container.data()), size_(static_cast<std::int64_t>(container.size()))
    {
    }
    T *data() const noexcept { return data_; }
    std::int64_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    T &operator[](std::int64_t i) const noexcept { return data_[i]; }
    T *begin() const noexcept { return data_; }
    T *end() const noexcept { return data_ + size_; }

  private:
    T *data_ = nullptr;
    std::int64_t size_ = 0;
};

// A hold on a context; copies hold the same one.
class context {
  public:
    // "cpu", "cuda", "cuda:N" or "auto"; 0 threads are all.
    explicit context(const char *device = "auto", int threads = 0)
    {
        sp_context_options options = {};
        options.device = device;
        options.threads = threads;
        check(nullptr, sp_context_create(&options, &handle_));
    }
    explicit context(const sp_context_options &options) { check(nullptr, sp_context_create(&options, &handle_)); }
    context(const context &other) noexcept : handle_(other.handle_)
    {
        if (handle_) sp_context_retain(handle_);
    }
    context(context &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    context &operator=(context other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~context() { sp_context_destroy(handle_); }

    sp_context *get() const noexcept { return handle_; }
    std::string device() const { return sp_context_device(handle_); }
    bool is_cuda() const noexcept { return sp_context_is_cuda(handle_); }
    int threads() const noexcept { return sp_context_threads(handle_); }
    sp_space space() const noexcept { return is_cuda() ? SP_DEVICE : SP_HOST; }

  private:
    sp_context *handle_ = nullptr;
};

inline void check(const context &context, sp_status status) { check(context.get(), status); }

template <typename T> struct type_of;
template <> struct type_of<float> {
    static constexpr sp_value_type value = SP_F32;
    static constexpr sp_dense_type dense = SP_DENSE_F32;
};
template <> struct type_of<double> {
    static constexpr sp_value_type value = SP_F64;
    static constexpr sp_dense_type dense = SP_DENSE_F64;
};

// A matrix of the caller's arrays in host memory, for calls that read it. No values: a pattern.
template <typename T>
sp_csr view(std::int64_t rows, std::int64_t cols, span<const std::int64_t> offsets, span<const std::int32_t> columns,
            span<const T> values)
{
    if (offsets.size() != rows + 1 || (!values.empty() && values.size() != columns.size()))
        throw error(SP_ERROR_ARGUMENT, "sparse::view: the arrays do not have the sizes of one matrix");
    return {rows, cols, columns.size(), const_cast<std::int64_t *>(offsets.data()),
            const_cast<std::int32_t *>(columns.data()),
            values.empty() ? nullptr : const_cast<void *>(static_cast<const void *>(values.data())), type_of<T>::value,
            SP_HOST};
}

// A matrix in compressed rows with values of type T, or a pattern (values() is empty).
template <typename T> class csr {
  public:
    // Takes over a matrix that the library made with this context.
    csr(const context &context, const sp_csr &made) : context_(context), matrix_(made) {}
    explicit csr(const context &context) : context_(context), matrix_() {}
    csr(csr &&other) noexcept : context_(other.context_), matrix_(std::exchange(other.matrix_, sp_csr{})) {}
    csr &operator=(csr &&other) noexcept
    {
        std::swap(context_, other.context_);
        std::swap(matrix_, other.matrix_);
        return *this;
    }
    csr(const csr &) = delete;
    csr &operator=(const csr &) = delete;
    ~csr() { sp_csr_free(context_.get(), &matrix_); }

    // No values: ones.
    static csr from_triples(const context &context, std::int64_t rows, std::int64_t cols,
                            span<const std::int32_t> row_indices, span<const std::int32_t> col_indices,
                            span<const T> values = {}, sp_combine combine = SP_COMBINE_SUM, bool symmetric = false)
    {
        csr made(context);
        if (row_indices.size() != col_indices.size() || (!values.empty() && values.size() != row_indices.size()))
            throw error(SP_ERROR_ARGUMENT, "sparse::csr::from_triples: the arrays differ in size");
        sp_coo triples = {};
        triples.rows = rows;
        triples.cols = cols;
        triples.count = row_indices.size();
        triples.row_indices = row_indices.data();
        triples.col_indices = col_indices.data();
        triples.values = values.empty() ? nullptr : values.data();
        triples.value_type = type_of<T>::value;
        check(context, sp_csr_from_coo(context.get(), &triples, combine, symmetric, made.get()));
        return made;
    }

    std::int64_t rows() const noexcept { return matrix_.rows; }
    std::int64_t cols() const noexcept { return matrix_.cols; }
    std::int64_t nnz() const noexcept { return matrix_.nnz; }
    sp_space space() const noexcept { return matrix_.space; }
    const context &where() const noexcept { return context_; }
    sp_csr *get() noexcept { return &matrix_; }
    const sp_csr *get() const noexcept { return &matrix_; }

    // The arrays, of a matrix in host memory; to(SP_HOST) copies one there.
    span<const std::int64_t> offsets() const
    {
        require_host();
        return {matrix_.row_offsets, matrix_.row_offsets ? matrix_.rows + 1 : 0};
    }
    span<const std::int32_t> columns() const
    {
        require_host();
        return {matrix_.col_indices, matrix_.nnz};
    }
    span<const T> values() const
    {
        require_host();
        return {static_cast<const T *>(matrix_.values), matrix_.values ? matrix_.nnz : 0};
    }
    span<T> values()
    {
        require_host();
        return {static_cast<T *>(matrix_.values), matrix_.values ? matrix_.nnz : 0};
    }

    csr to(sp_space space) const
    {
        csr made(context_);
        check(context_, sp_csr_copy(context_.get(), &matrix_, space, made.get()));
        return made;
    }
    csr transposed() const
    {
        csr made(context_);
        check(context_, sp_csr_transpose(context_.get(), &matrix_, made.get()));
        return made;
    }
    csr top_k(std::int64_t k) const
    {
        csr made(context_);
        check(context_, sp_csr_top_k(context_.get(), &matrix_, k, made.get()));
        return made;
    }
    csr select(sp_select which, double bound) const
    {
        csr made(context_);
        check(context_, sp_csr_select(context_.get(), &matrix_, which, bound, made.get()));
        return made;
    }
    // Factors of rows and of columns, in host memory; an empty span for none.
    void scale(span<const double> row_factors, span<const double> col_factors = {})
    {
        if ((!row_factors.empty() && row_factors.size() != rows()) ||
            (!col_factors.empty() && col_factors.size() != cols()))
            throw error(SP_ERROR_ARGUMENT, "sparse::csr::scale: there must be a factor for each row or column");
        check(context_, sp_csr_scale(context_.get(), &matrix_, row_factors.empty() ? nullptr : row_factors.data(),
                                     col_factors.empty() ? nullptr : col_factors.data(), SP_HOST));
    }
    std::vector<double> row_sums() const
    {
        std::vector<double> sums(static_cast<std::size_t>(rows()));
        check(context_, sp_csr_reduce_rows(context_.get(), &matrix_, SP_COMBINE_SUM, sums.data(), SP_HOST));
        return sums;
    }

  private:
    void require_host() const
    {
        if (matrix_.space != SP_HOST)
            throw error(SP_ERROR_ARGUMENT, "sparse::csr: the arrays lie on a device; to(SP_HOST) copies them");
    }
    context context_;
    sp_csr matrix_;
};

// ---- products of two sparse matrices ---------------------------------------------------------------------------

template <typename T> csr<T> multiply(const csr<T> &a, const csr<T> &b, const sp_spgemm_options &options = {})
{
    csr<T> c(a.where());
    check(a.where(), sp_spgemm(a.where().get(), a.get(), b.get(), &options, c.get(), nullptr));
    return c;
}

template <typename T> csr<T> operator*(const csr<T> &a, const csr<T> &b) { return multiply(a, b); }

template <typename T> csr<T> add(double alpha, const csr<T> &a, double beta, const csr<T> &b)
{
    csr<T> c(a.where());
    check(a.where(), sp_csr_add(a.where().get(), alpha, a.get(), beta, b.get(), c.get()));
    return c;
}

template <typename T> csr<T> similarity(const csr<T> &a, const csr<T> &b, const sp_similarity_options &options = {})
{
    csr<T> c(a.where());
    check(a.where(), sp_similarity(a.where().get(), a.get(), b.get(), &options, c.get(), nullptr));
    return c;
}

// The graph of groups: `labels` in host memory, a group below `groups` for each node.
template <typename T>
csr<T> contract(const csr<T> &graph, span<const std::int32_t> labels, std::int64_t groups,
                const sp_contract_options &options = {})
{
    csr<T> c(graph.where());
    if (labels.size() != graph.rows())
        throw error(SP_ERROR_ARGUMENT, "sparse::contract: there must be a label for each node");
    check(graph.where(), sp_contract(graph.where().get(), graph.get(), labels.data(), SP_HOST, groups, &options,
                                     c.get(), nullptr));
    return c;
}

// ---- products with dense matrices ------------------------------------------------------------------------------

// A plan for many products with one matrix, which must outlive it unchanged.
template <typename T> class spmm_plan {
  public:
    explicit spmm_plan(const csr<T> &a, std::int64_t width = 1, const sp_spmm_options &options = {})
        : context_(a.where()), in_(options.transpose ? a.rows() : a.cols()),
          out_(options.transpose ? a.cols() : a.rows())
    {
        check(context_, sp_spmm_plan_create(context_.get(), a.get(), width, &options, &plan_));
    }
    spmm_plan(spmm_plan &&other) noexcept
        : context_(other.context_), in_(other.in_), out_(other.out_), plan_(std::exchange(other.plan_, nullptr))
    {
    }
    spmm_plan &operator=(spmm_plan &&) = delete;
    ~spmm_plan() { sp_spmm_plan_free(plan_); }

    sp_spmm_plan *get() const noexcept { return plan_; }

    // y = alpha · A · x + beta · y for matrices of `width` columns, row after row, in host memory.
    void multiply(span<const T> x, span<T> y, std::int64_t width = 1, double alpha = 1, double beta = 0) const
    {
        if (x.size() != in_ * width || y.size() != out_ * width)
            throw error(SP_ERROR_ARGUMENT, "sparse::spmm_plan: x or y does not have the size of the product");
        const sp_dense from = {in_, width, width, const_cast<T *>(x.data()), type_of<T>::dense, SP_HOST, SP_ROW_MAJOR,
                               0, 0};
        sp_dense to = {out_, width, width, y.data(), type_of<T>::dense, SP_HOST, SP_ROW_MAJOR, 0, 0};
        check(context_, sp_spmm_execute(plan_, alpha, &from, beta, &to));
    }

  private:
    context context_;
    std::int64_t in_, out_;
    sp_spmm_plan *plan_ = nullptr;
};

} // namespace sparse

#endif
