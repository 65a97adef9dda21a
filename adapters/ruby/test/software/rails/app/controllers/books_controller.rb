# frozen_string_literal: true

# Books with the text of a file.
class BooksController < ApplicationController
  before_action :find_book, except: %i[index new create]

  def index
    @books = Book.order(:id)
    respond_to do |format|
      format.html
      format.json { render json: @books.as_json(only: %i[id title pages]) }
      format.csv { send_data @books.map { |b| "#{b.id},#{b.title}\n" }.join, filename: "books.csv" }
    end
  end

  def new
    @book = Book.new
    render :form
  end

  def edit
    render :form
  end

  def show
    fresh_when(@book, public: true) if params[:conditional]
  end

  def create
    @book = Book.new(attributes)
    return render(:form, status: :unprocessable_entity) unless @book.save

    redirect_to root_path, notice: "“#{@book.title}” is on the shelf"
  end

  def update
    return render(:form, status: :unprocessable_entity) unless @book.update(attributes)

    redirect_to @book, notice: "saved"
  end

  def destroy
    @book.destroy!
    respond_to do |format|
      format.html { redirect_to books_url, alert: "gone", status: :see_other }
      format.json { head :no_content }
    end
  end

  # The text from memory.
  def text
    send_data @book.text, filename: params[:name] || "text.bin", type: "application/octet-stream",
                          disposition: params[:disposition] || "inline"
  end

  # The text as a file.
  def file
    path = Rails.root.join("tmp", "book-#{@book.id}.bin")
    FileUtils.mkdir_p(path.dirname)
    File.binwrite(path, @book.text)
    File.utime(@book.updated_at.to_i, @book.updated_at.to_i, path)
    send_file path, type: "application/octet-stream", filename: "Übersicht.bin"
  end

  private

  def find_book
    @book = Book.find(params[:id])
  end

  def attributes
    given = params.require(:book).permit(:title, :pages, :text)
    file = given[:text]
    return given unless file.respond_to?(:read)

    given.merge(text: file.read, file_name: file.original_filename)
  end
end
